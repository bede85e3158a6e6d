//! Where the wanted columns of an Arrow stream stand in its record batches, and what they are made of.

use arrow_ipc::{Endianness, Field, Int, MetadataVersion, Schema, TimeUnit, Type, UnionMode};

use crate::input::InputError;

/// The numbers of parts of a record batch that come before a field.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cursor {
    pub(crate) nodes: usize,
    /// Without the data buffers of views, of which each batch has its own number.
    pub(crate) buffers: usize,
    /// Fields of views.
    pub(crate) views: usize,
}

/// The make-up of a column.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    Plain(Leaf),
    /// Places in a list of values that comes apart.
    Dictionary {
        id: i64,
        places: Whole,
        values: Leaf,
    },
    /// Values that stand for several rows each.
    Runs {
        ends: Whole,
        values: Box<Shape>,
    },
}

impl Shape {
    /// The dictionary that its places stand for, and what is in that.
    pub(crate) fn dictionary(&self) -> Option<(i64, Leaf)> {
        match self {
            Self::Plain(_) => None,
            Self::Dictionary { id, values, .. } => Some((*id, *values)),
            Self::Runs { values, .. } => values.dictionary(),
        }
    }

    pub(crate) fn has_times(&self) -> bool {
        match self {
            Self::Plain(leaf) | Self::Dictionary { values: leaf, .. } => matches!(leaf, Leaf::Times(_)),
            Self::Runs { values, .. } => values.has_times(),
        }
    }
}

/// One kind of value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Leaf {
    /// Text or bytes with offsets of this many bytes.
    Texts(usize),
    Views,
    /// Bytes of one length, at least 1.
    Fixed(usize),
    Flags,
    Whole(Whole),
    Times(TimeUnit),
}

/// Integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole {
    /// Bytes of each.
    pub(crate) width: usize,
    pub(crate) is_signed: bool,
}

/// A column that was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) shape: Option<Shape>,
    /// The name of its type, for the error where it cannot be read.
    pub(crate) type_name: &'static str,
    pub(crate) at: Cursor,
}

/// Finds columns by name, each the first of its name.
pub(crate) fn find(
    schema: Schema<'_>,
    version: MetadataVersion,
    names: &[&str],
) -> Result<Vec<Found>, InputError> {
    if schema.endianness() != Endianness::Little || !is_known(version) {
        return Err(InputError::Arrow);
    }
    let mut found: Vec<Option<Found>> = names.iter().map(|_| None).collect();
    let mut at = Cursor::default();
    for field in schema.fields().into_iter().flatten() {
        let name = field.name().unwrap_or_default();
        for (wanted, place) in names.iter().zip(&mut found) {
            if *wanted == name && place.is_none() {
                let type_name = field.type_type().variant_name().unwrap_or("unknown");
                *place = Some(Found { shape: shape(field), type_name, at });
            }
        }
        at.skip(field, version)?;
    }
    let missing = |(name, found): (&&str, Option<Found>)| {
        found.ok_or_else(|| InputError::ArrowMissing((*name).to_owned()))
    };
    names.iter().zip(found).map(missing).collect()
}

fn is_known(version: MetadataVersion) -> bool {
    version == MetadataVersion::V4 || version == MetadataVersion::V5
}

impl Cursor {
    /// Moves behind a field and all that is inside it.
    fn skip(&mut self, field: Field<'_>, version: MetadataVersion) -> Result<(), InputError> {
        self.nodes += 1;
        if field.dictionary().is_some() {
            self.buffers += 2;
            return Ok(());
        }
        self.buffers += match field.type_type() {
            Type::Null | Type::RunEndEncoded => 0,
            Type::Struct_ | Type::FixedSizeList => 1,
            Type::Utf8 | Type::Binary | Type::LargeUtf8 | Type::LargeBinary => 3,
            Type::ListView | Type::LargeListView => 3,
            Type::Utf8View | Type::BinaryView => {
                self.views += 1;
                2
            }
            Type::Union => union_buffers(field, version)?,
            kind if kind.variant_name().is_some() && kind != Type::NONE => 2,
            _ => return Err(InputError::Arrow),
        };
        field.children().into_iter().flatten().try_for_each(|child| self.skip(child, version))
    }

    /// Behind the one node of a column of runs, which has no buffers.
    pub(crate) fn inside(self) -> Self {
        Self { nodes: self.nodes + 1, ..self }
    }

    /// Behind a column of integers.
    pub(crate) fn behind_whole(self) -> Self {
        Self { nodes: self.nodes + 1, buffers: self.buffers + 2, ..self }
    }
}

/// Before version 5, unions also said which of their values are there.
fn union_buffers(field: Field<'_>, version: MetadataVersion) -> Result<usize, InputError> {
    let union = field.type_as_union().ok_or(InputError::Arrow)?;
    let own = if union.mode() == UnionMode::Dense { 2 } else { 1 };
    Ok(own + usize::from(version == MetadataVersion::V4))
}

/// What a column is made of; `None` if it cannot be read as anything.
fn shape(field: Field<'_>) -> Option<Shape> {
    if let Some(dictionary) = field.dictionary() {
        // Without a type of their own, places are integers of 32 bits.
        let places = dictionary.indexType().map_or(Some(Whole { width: 4, is_signed: true }), whole)?;
        return Some(Shape::Dictionary { id: dictionary.id(), places, values: leaf(field)? });
    }
    if field.type_type() == Type::RunEndEncoded {
        let children = field.children()?;
        let mut children = children.iter();
        let ends = children.next()?;
        let values = children.next()?;
        let Leaf::Whole(ends) = leaf(ends)? else { return None };
        let values = shape(values).filter(|values| !matches!(values, Shape::Runs { .. }))?;
        return Some(Shape::Runs { ends, values: Box::new(values) });
    }
    leaf(field).map(Shape::Plain)
}

fn leaf(field: Field<'_>) -> Option<Leaf> {
    Some(match field.type_type() {
        Type::Utf8 | Type::Binary => Leaf::Texts(4),
        Type::LargeUtf8 | Type::LargeBinary => Leaf::Texts(8),
        Type::Utf8View | Type::BinaryView => Leaf::Views,
        Type::Bool => Leaf::Flags,
        Type::Int => Leaf::Whole(whole(field.type_as_int()?)?),
        Type::Timestamp => Leaf::Times(field.type_as_timestamp()?.unit()),
        Type::FixedSizeBinary => {
            let width = usize::try_from(field.type_as_fixed_size_binary()?.byteWidth()).ok()?;
            Leaf::Fixed((0 < width).then_some(width)?)
        }
        _ => return None,
    })
}

fn whole(int: Int<'_>) -> Option<Whole> {
    let width = match int.bitWidth() {
        8 => 1,
        16 => 2,
        32 => 4,
        64 => 8,
        _ => return None,
    };
    Some(Whole { width, is_signed: int.is_signed() })
}

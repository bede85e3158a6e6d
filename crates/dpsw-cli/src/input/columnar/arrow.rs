//! Arrow files and streams: messages of metadata and buffers, as the format's specification of its IPC lays them out.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use anyhow::{Context, Result};

use crate::input::columnar::array::Array;
use crate::input::columnar::flatbuffer::Table;
use crate::input::columnar::rows::{Cells, Chosen, Column, Rows};
use crate::input::columnar::schema::{self, Field, Kind, Plain};
use crate::input::columnar::value::Value;
use crate::input::columnar::{ROWS_AT_ONCE, Selection, damaged, unsuited};

/// Begins and ends a file; a stream has none.
const MAGIC: &[u8] = b"ARROW1";
/// Stands before the length of a message, except in files from before 2019.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Reads a file or a saved stream; `rows` says whether anyone still listens.
pub(super) fn read(
    mut source: impl Read + Seek,
    selection: &Selection,
    rows: impl FnMut(Rows) -> bool,
) -> Result<()> {
    let mut magic = Vec::new();
    (&mut source).take(MAGIC.len() as u64).read_to_end(&mut magic).context("its start is unreadable")?;
    source.seek(SeekFrom::Start(0))?;
    if magic == MAGIC { read_file(source, selection, rows) } else { read_stream(source, selection, rows) }
}

/// Reads the messages of a stream in their order.
pub(super) fn read_stream(
    mut source: impl Read,
    selection: &Selection,
    mut rows: impl FnMut(Rows) -> bool,
) -> Result<()> {
    let first = Message::read(&mut source)?.ok_or_else(|| damaged("it is empty"))?;
    let mut batches = match first.header()? {
        Header::Schema(schema) => Batches::new(schema, selection)?,
        _ => return Err(damaged("it does not start with its columns")),
    };
    while let Some(message) = Message::read(&mut source)? {
        if !batches.take(&message, &mut rows)? {
            break;
        }
    }
    Ok(())
}

/// Reads the messages of a file that its footer names: dictionaries first, wherever they are.
fn read_file(
    mut source: impl Read + Seek,
    selection: &Selection,
    mut rows: impl FnMut(Rows) -> bool,
) -> Result<()> {
    let footer = footer(&mut source)?;
    let footer = Table::root(&footer)?;
    let mut batches = Batches::new(footer.table_needed(1)?, selection)?;
    // A block is its start, the length of its metadata, and the length of its buffers.
    let blocks = [footer.structs::<3>(2)?, footer.structs::<3>(3)?].concat();
    for [start, _, _] in blocks {
        source.seek(SeekFrom::Start(u64::try_from(start).map_err(damaged)?))?;
        let message = Message::read(&mut source)?.ok_or_else(|| damaged("a batch is missing"))?;
        if !batches.take(&message, &mut rows)? {
            break;
        }
    }
    Ok(())
}

/// The footer stands before its length and the magic.
fn footer(source: &mut (impl Read + Seek)) -> Result<Vec<u8>> {
    let file_len = source.seek(SeekFrom::End(0))?;
    let tail_len = 4 + MAGIC.len() as u64;
    let tail_start = file_len.checked_sub(tail_len).ok_or_else(cut)?;
    source.seek(SeekFrom::Start(tail_start))?;
    let tail = exactly(source, tail_len)?;
    let (len, magic) = tail.split_at(4);
    if magic != MAGIC {
        return Err(cut());
    }
    let len = u32::from_le_bytes(len.try_into().expect("four bytes")).into();
    source.seek(SeekFrom::Start(tail_start.checked_sub(len).ok_or_else(cut)?))?;
    exactly(source, len)
}

/// Metadata, and the buffers that it speaks of.
struct Message {
    metadata: Vec<u8>,
    body: Vec<u8>,
}

/// What a message is about.
enum Header<'a> {
    Schema(Table<'a>),
    Dictionary(Table<'a>),
    Batch(Table<'a>),
    Other,
}

impl Message {
    /// `None` at the end.
    fn read(source: &mut impl Read) -> Result<Option<Self>> {
        let Some(mut len) = word(source)? else { return Ok(None) };
        if len == CONTINUATION {
            len = word(source)?.ok_or_else(cut)?;
        }
        let len = u32::from_le_bytes(len);
        if len == 0 {
            return Ok(None);
        }
        let metadata = exactly(source, len.into())?;
        let body_len = Table::root(&metadata)?.integer::<8>(3, 0)?;
        let body = exactly(source, u64::try_from(body_len).map_err(damaged)?)?;
        Ok(Some(Self { metadata, body }))
    }

    fn header(&self) -> Result<Header<'_>> {
        let table = Table::root(&self.metadata)?;
        let header = table.table_needed(2)?;
        Ok(match table.integer::<1>(1, 0)? {
            1 => Header::Schema(header),
            2 => Header::Dictionary(header),
            3 => Header::Batch(header),
            _ => Header::Other,
        })
    }
}

/// Four bytes, or nothing at the end.
fn word(source: &mut impl Read) -> Result<Option<[u8; 4]>> {
    let mut word = Vec::new();
    source.take(4).read_to_end(&mut word)?;
    if word.is_empty() { Ok(None) } else { word.try_into().map(Some).map_err(|_| cut()) }
}

/// Exactly this many bytes; memory grows with what is there, not with what is announced.
fn exactly(source: &mut impl Read, len: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(len).read_to_end(&mut bytes).map_err(damaged)?;
    if bytes.len() as u64 == len { Ok(bytes) } else { Err(cut()) }
}

fn cut() -> anyhow::Error {
    damaged("it is cut off")
}

/// Turns batches into rows, and keeps the dictionaries that they need.
struct Batches {
    fields: Vec<Field>,
    chosen: Chosen<usize>,
    dictionaries: Dictionaries,
}

/// By number. A dictionary may grow by further arrays.
type Dictionaries = HashMap<i64, Vec<Array>>;

impl Batches {
    fn new(schema: Table<'_>, selection: &Selection) -> Result<Self> {
        let fields = schema::fields(schema)?;
        let names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
        let chosen = selection.find(&names)?;
        for &index in chosen.iter() {
            if !matches!(fields[index].kind, Kind::Plain(_)) {
                return Err(unsuited(&names[index]));
            }
        }
        Ok(Self { fields, chosen, dictionaries: Dictionaries::new() })
    }

    /// Takes a message; false if nobody listens any more.
    fn take(&mut self, message: &Message, rows: &mut impl FnMut(Rows) -> bool) -> Result<bool> {
        match message.header()? {
            Header::Dictionary(table) => self.learn(table, &message.body)?,
            Header::Batch(table) => return self.rows(&Batch::new(table, &message.body)?, rows),
            Header::Schema(_) | Header::Other => {}
        }
        Ok(true)
    }

    /// Takes a dictionary, or the next part of one, if a chosen column needs it.
    fn learn(&mut self, table: Table<'_>, body: &[u8]) -> Result<()> {
        let id = table.integer::<8>(0, 0)?;
        let uses = |index: &&usize| self.fields[**index].dictionary.is_some_and(|(used, _)| used == id);
        let Some(&index) = self.chosen.iter().find(uses) else { return Ok(()) };
        let Kind::Plain(plain) = self.fields[index].kind else { return Ok(()) };
        let batch = Batch::new(table.table_needed(1)?, body)?;
        let array = batch.array(plain, &mut Place::default())?;
        let arrays = self.dictionaries.entry(id).or_default();
        if !table.flag(2)? {
            arrays.clear();
        }
        arrays.push(array);
        Ok(())
    }

    fn rows(&self, batch: &Batch<'_>, rows: &mut impl FnMut(Rows) -> bool) -> Result<bool> {
        let arrays = self.arrays(batch)?;
        let mut columns = self.chosen.try_map(|index| {
            let array = arrays.get(&index).ok_or_else(cut)?;
            let dictionary = self.fields[index].dictionary.map(|(id, _)| self.dictionary(id));
            Ok(Cursor { array, dictionary, next: 0 })
        })?;
        let mut left = batch.len;
        while 0 < left {
            let count = left.min(ROWS_AT_ONCE);
            left -= count;
            if !rows(columns.rows(count)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn dictionary(&self, id: i64) -> &[Array] {
        self.dictionaries.get(&id).map_or(&[], Vec::as_slice)
    }

    /// The chosen columns of a batch.
    fn arrays(&self, batch: &Batch<'_>) -> Result<HashMap<usize, Array>> {
        let mut place = Place::default();
        let mut arrays = HashMap::new();
        for (index, field) in self.fields.iter().enumerate() {
            match field.stored() {
                Kind::Plain(plain) if self.chosen.iter().any(|chosen| *chosen == index) => {
                    arrays.insert(index, batch.array(plain, &mut place)?);
                }
                _ => batch.skip(field, &mut place)?,
            }
        }
        Ok(arrays)
    }
}

/// A column of a batch while it is read.
struct Cursor<'a> {
    array: &'a Array,
    dictionary: Option<&'a [Array]>,
    next: usize,
}

impl Column for Cursor<'_> {
    fn read(&mut self, count: usize, cells: &mut impl Cells) -> Result<()> {
        let rows = self.next..self.next + count;
        self.next = rows.end;
        for row in rows {
            cells.push(match self.dictionary {
                Some(dictionary) => look_up(dictionary, self.array.index(row)?)?,
                None => self.array.value(row)?,
            });
        }
        Ok(())
    }
}

fn look_up(dictionary: &[Array], index: Option<usize>) -> Result<Value<'_>> {
    let Some(mut index) = index else { return Ok(Value::Null) };
    for array in dictionary {
        if index < array.len() {
            return array.value(index);
        }
        index -= array.len();
    }
    Err(damaged("an index points outside its dictionary"))
}

/// How far the lists of a batch have been used up.
#[derive(Debug, Default)]
struct Place {
    node: usize,
    buffer: usize,
    view: usize,
}

/// The metadata of a batch, and its buffers.
struct Batch<'a> {
    len: usize,
    body: &'a [u8],
    packing: Option<Packing>,
    /// Rows and nulls of each column.
    nodes: Vec<[i64; 2]>,
    /// Start and length of each buffer.
    buffers: Vec<[i64; 2]>,
    /// How many further buffers each view has.
    views: Vec<[i64; 1]>,
}

/// How each buffer is packed.
#[derive(Debug, Clone, Copy)]
enum Packing {
    Lz4,
    Zstd,
}

impl<'a> Batch<'a> {
    fn new(table: Table<'_>, body: &'a [u8]) -> Result<Self> {
        let packing = match table.table(3)?.map(|packing| packing.integer::<1>(0, 0)).transpose()? {
            None => None,
            Some(0) => Some(Packing::Lz4),
            Some(1) => Some(Packing::Zstd),
            Some(number) => return Err(damaged(format!("it is packed in the unknown way {number}"))),
        };
        Ok(Self {
            len: usize::try_from(table.integer::<8>(0, 0)?).map_err(damaged)?,
            body,
            packing,
            nodes: table.structs(1)?,
            buffers: table.structs(2)?,
            views: table.structs(4)?,
        })
    }

    /// Takes the next column.
    fn array(&self, plain: Plain, place: &mut Place) -> Result<Array> {
        let [len, nulls] = *self.nodes.get(place.node).ok_or_else(cut)?;
        if usize::try_from(len).ok() != Some(self.len) {
            return Err(damaged("a column is shorter or longer than its batch"));
        }
        let buffers = self.claim(Kind::Plain(plain), place)?;
        let buffers = buffers.map(|index| self.unpacked(index)).collect::<Result<_>>()?;
        Ok(Array::new(plain, self.len, nulls != 0, buffers))
    }

    /// Passes over a column and its parts.
    fn skip(&self, field: &Field, place: &mut Place) -> Result<()> {
        self.claim(field.stored(), place)?;
        // The parts of what is in a dictionary are there.
        if field.dictionary.is_none() {
            field.children.iter().try_for_each(|child| self.skip(child, place))?;
        }
        Ok(())
    }

    /// The buffers of the next column.
    fn claim(&self, kind: Kind, place: &mut Place) -> Result<Range<usize>> {
        let mut count = kind.buffers();
        if kind == Kind::Plain(Plain::View) {
            let [more] = *self.views.get(place.view).ok_or_else(cut)?;
            count = usize::try_from(more).ok().and_then(|more| more.checked_add(count)).ok_or_else(cut)?;
            place.view += 1;
        }
        place.node += 1;
        let start = place.buffer;
        place.buffer = start.checked_add(count).filter(|end| *end <= self.buffers.len()).ok_or_else(cut)?;
        Ok(start..place.buffer)
    }

    fn unpacked(&self, index: usize) -> Result<Vec<u8>> {
        let [start, len] = self.buffers[index].map(|number| usize::try_from(number).ok());
        let range = start.zip(len).and_then(|(start, len)| Some(start..start.checked_add(len)?));
        let bytes = range.and_then(|range| self.body.get(range)).ok_or_else(cut)?;
        match self.packing {
            Some(packing) if !bytes.is_empty() => unpack(bytes, packing),
            _ => Ok(bytes.to_vec()),
        }
    }
}

/// A packed buffer starts with its unpacked length; -1 says that it is not packed after all.
fn unpack(bytes: &[u8], packing: Packing) -> Result<Vec<u8>> {
    let (len, packed) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
    let len = i64::from_le_bytes(*len);
    if len == -1 {
        return Ok(packed.to_vec());
    }
    let len = u64::try_from(len).map_err(damaged)?;
    match packing {
        Packing::Lz4 => exactly(&mut lz4_flex::frame::FrameDecoder::new(packed), len),
        Packing::Zstd => exactly(&mut zstd::Decoder::new(packed)?, len),
    }
}

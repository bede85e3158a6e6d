//! WindowView ↔ versioned bytes.
//!
//! ```text
//! 0            8         10                                         len - 4
//! +------------+---------+------------------- ... ------------------+----------+
//! | "DPSWVIEW" | version | body                                     | checksum |
//! +------------+---------+------------------- ... ------------------+----------+
//!   8 bytes      u16                                                  CRC-32 of all before it
//!
//! body        settings             all else of the plan follows from them (bytes/settings.rs)
//!             no claim u8          1 if some noise was reproducible
//!             sites                count, then u64 each, ascending
//!             start u64  end u64   of the stream
//!             finished u8
//!             fingerprint key u64
//!             site                 once; if sites are kept apart (several, and slices) once for each, after start u64 and end u64
//!             [found keys]         count, then u64 or bytes each, by keyed hash
//!
//! site        substreams           count, then of each:
//!               number u64
//!               [capped option]
//!               [row keys]         u64 for each row
//!               [levels]           base u32, then for each level from 1 on: count, key index u32 each
//!               sketches           count, then of each: range u64, items option, cells i32 row by row
//!             [pins]               decided from u64, until u64; count, then of each:
//!                                    fingerprint u64, slot u32, first substream u64, the one after the last u64
//! ```
//!
//! Integers are little endian. A count is a u64; bytes are a count and that many bytes; an option is a u8, 0 or 1, and a u64 that
//! is there either way. Parts in brackets are there if the plan has users, hashed counters, several levels, pinned keys or a
//! search for keys.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::bytes::codec::{Reader, Writer};
use crate::decide::found::FoundCounter;
use crate::error::SnapshotError;
use crate::item::hash::FingerprintKey;
use crate::item::keys::Keys;
use crate::item::mapping::Columns;
use crate::plan::limits::{ITEMS_MAX, SITES_MAX};
use crate::plan::mapper::Mapper;
use crate::plan::paper::checkpoint::Role;
use crate::plan::structure::Plan;
use crate::privacy::parameters::Claim;
use crate::sealed::found::FoundKeys;
use crate::sealed::levels::Levels;
use crate::sealed::pins::Pins;
use crate::sealed::released::Released;
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;
use crate::view::cached_release::CachedRelease;
use crate::view::merge::join_substreams;
use crate::view::window_view::WindowView;

const MAGIC: &[u8; 8] = b"DPSWVIEW";
const VERSION: u16 = 1;

impl WindowView {
    /// The view as bytes: the public plan, the hash keys of its substreams and their sealed counters. They may be
    /// published: they hold nothing that cannot be asked of the view.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(MAGIC, VERSION);
        write_view(&mut writer, self);
        writer.finish()
    }

    /// The view that these bytes were made of; it answers like the original, bit for bit. Its window is the whole one.
    ///
    /// # Errors
    /// The bytes are no view, have another version, are damaged, or describe what cannot be.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let mut reader = Reader::new(bytes, MAGIC, VERSION)?;
        let view = read_view(&mut reader)?;
        reader.finish()?;
        Ok(view)
    }
}

pub(crate) fn write_view(writer: &mut Writer, view: &WindowView) {
    writer.put_plan(&view.plan);
    // Noise that was reproducible is known as such wherever the bytes go (PRIVACY.md: rule 7).
    writer.put_u8((view.claim == Claim::None).into());
    writer.put_len(view.sites.len());
    view.sites.iter().for_each(|&site| writer.put_u64(site));
    writer.put_u64(view.stream.start);
    writer.put_u64(view.stream.end);
    writer.put_u8(view.finished().is_some().into());
    // This key and those of the rows are all that is said of the hash (PRIVACY.md: rule 25).
    writer.put_u64(view.cached.released.mapping().fingerprint_key.get());
    if view.apart.is_empty() {
        write_site(writer, view);
    }
    for site in &*view.apart {
        writer.put_u64(site.stream.start);
        writer.put_u64(site.stream.end);
        write_site(writer, site);
    }
    if view.plan.search_plan().is_some() {
        writer.put_keys(view.cached.released.found().keys());
    }
}

fn write_site(writer: &mut Writer, view: &WindowView) {
    writer.put_len(view.cached.released.substreams().len());
    for substream in view.cached.released.substreams() {
        write_substream(writer, substream, &view.plan);
    }
    if 0 < view.plan.pinned() {
        write_pins(writer, view.cached.released.pins());
    }
}

fn write_substream(writer: &mut Writer, substream: &SealedSubstream, plan: &Plan) {
    writer.put_u64(substream.number);
    if plan.user_room().is_some() {
        // Who sends when is public where users are protected, so this is as well (PRIVACY.md: rule 14).
        writer.put_option(substream.capped());
    }
    if let Columns::Hashed(keys) = &substream.mapping.columns {
        keys.iter().for_each(|&key| writer.put_u64(key));
    }
    if 1 < plan.levels().count() {
        write_levels(writer, substream.levels());
    }
    writer.put_len(substream.sketches().len());
    for (range, sketch) in substream.sketches() {
        writer.put_len(*range);
        // None where presence is private (PRIVACY.md: rule 18).
        writer.put_option(sketch.items());
        writer.put_cells(&sketch.cells());
    }
}

pub(crate) fn write_levels(writer: &mut Writer, levels: &Levels) {
    writer.put_u32(levels.base_level());
    for places in levels.finer_lists() {
        writer.put_len(places.len());
        places.iter().for_each(|&place| writer.put_u32(place));
    }
}

fn write_pins(writer: &mut Writer, pins: &Pins) {
    let decided = pins.horizon().range();
    writer.put_u64(decided.start);
    writer.put_u64(decided.end);
    writer.put_len(pins.iter().len());
    for (fingerprint, slot, range) in pins.iter() {
        writer.put_u64(fingerprint);
        writer.put_u32(slot);
        writer.put_u64(range.start);
        writer.put_u64(range.end);
    }
}

fn read_pins(reader: &mut Reader<'_>, plan: &Plan) -> Result<Pins, SnapshotError> {
    if plan.pinned() == 0 {
        return Ok(Pins::default());
    }
    let decided = reader.read_u64()?..reader.read_u64()?;
    let count = reader.read_len(28)?;
    let mut pins = Vec::with_capacity(count);
    for _ in 0..count {
        pins.push((reader.read_u64()?, reader.read_u32()?, reader.read_u64()?..reader.read_u64()?));
    }
    let pins = Pins::from_parts(plan, decided, &pins);
    pins.ok_or(SnapshotError::invalid("its pinned keys do not fit together"))
}

pub(crate) fn read_levels(reader: &mut Reader<'_>, plan: &Plan) -> Result<Levels, SnapshotError> {
    if plan.levels().count() == 1 {
        return Ok(Levels::first(plan));
    }
    let base = reader.read_u32()?;
    let mut finer = Vec::new();
    for _ in 1..plan.levels().count() {
        let len = reader.read_len(4)?;
        finer.push((0..len).map(|_| reader.read_u32()).collect::<Result<Box<[u32]>, _>>()?);
    }
    Levels::from_parts(base, finer, plan).ok_or(SnapshotError::invalid("its levels are no lists of its keys"))
}

pub(crate) fn read_view(reader: &mut Reader<'_>) -> Result<WindowView, SnapshotError> {
    let plan = Arc::new(Plan::new(reader.read_settings()?)?);
    let claim = if reader.read_flag()? { Claim::None } else { plan.claim() };
    let sites = read_sites(reader)?;
    let stream = reader.read_u64()?..reader.read_u64()?;
    if stream.end < stream.start || POSITION_MAX < stream.end {
        return Err(SnapshotError::invalid("its positions are out of range"));
    }
    let is_finished = reader.read_flag()?;
    let mapper = Mapper::new(&plan, FingerprintKey::new(reader.read_u64()?));
    let reference = mapper.make_mapping(&plan, |rows| Ok::<_, SnapshotError>(vec![1; rows]))?;
    if 1 < sites.len() && plan.has_slices() {
        let site = |&site: &u64| {
            let stream = read_site(reader, &stream)?;
            let substreams = read_substreams(reader, &plan, &mapper, stream.end, is_finished)?;
            let pins = Arc::new(read_pins(reader, &plan)?);
            let released = Released::new(substreams, reference.clone()).with_pins(pins);
            Ok(WindowView::new(
                Arc::clone(&plan),
                Arc::new(CachedRelease::new(released)),
                claim,
                stream,
                vec![site],
            ))
        };
        let sites = sites.iter().map(site).collect::<Result<Vec<_>, SnapshotError>>()?;
        let released = Released::new(read_together(&sites)?, reference);
        let found = Arc::new(read_found(reader, &plan, &released)?);
        let view = WindowView::of_sites(sites, released.with_found(found), stream);
        return Ok(if is_finished { view.into_finished() } else { view });
    }
    let substreams = read_substreams(reader, &plan, &mapper, stream.end, is_finished)?;
    let released = Released::new(substreams, reference);
    let released = released.with_pins(Arc::new(read_pins(reader, &plan)?));
    let found = read_found(reader, &plan, &released)?;
    let released = released.with_found(Arc::new(found));
    let view = WindowView::new(plan, Arc::new(CachedRelease::new(released)), claim, stream, sites);
    Ok(if is_finished { view.into_finished() } else { view })
}

/// No position reaches this: at 10⁹ items per second that would take more than a century.
const POSITION_MAX: u64 = 1 << 62;

fn read_sites(reader: &mut Reader<'_>) -> Result<Vec<u64>, SnapshotError> {
    let count = reader.read_len(8)?;
    let sites = (0..count).map(|_| reader.read_u64()).collect::<Result<Vec<_>, _>>()?;
    if sites.is_empty() || SITES_MAX < sites.len() || !sites.is_sorted_by(|a, b| a < b) {
        return Err(SnapshotError::invalid("its sites are not a sorted list of 1 to 1000"));
    }
    Ok(sites)
}

/// Where the stream of a site begins and how far it is known, inside that of all.
fn read_site(reader: &mut Reader<'_>, all: &Range<u64>) -> Result<Range<u64>, SnapshotError> {
    let stream = reader.read_u64()?..reader.read_u64()?;
    let is_inside = all.start <= stream.start && stream.start <= stream.end && stream.end <= all.end;
    if !is_inside {
        return Err(SnapshotError::invalid("its sites do not fit together"));
    }
    Ok(stream)
}

fn substream_numbers(site: &WindowView) -> Vec<u64> {
    site.cached.released.substreams().iter().map(|substream| substream.number).collect()
}

/// What these sites hold together, which all have the same substreams.
fn read_together(sites: &[WindowView]) -> Result<Vec<Arc<SealedSubstream>>, SnapshotError> {
    let common = substream_numbers(&sites[0]);
    if sites.iter().any(|site| substream_numbers(site) != common) {
        return Err(SnapshotError::invalid("its sites have different substreams"));
    }
    let together = join_substreams(&sites.iter().collect::<Vec<_>>(), &common);
    together.ok_or(SnapshotError::invalid("its sites hash differently"))
}

fn read_substreams(
    reader: &mut Reader<'_>,
    plan: &Plan,
    mapper: &Mapper,
    end: u64,
    is_finished: bool,
) -> Result<Vec<Arc<SealedSubstream>>, SnapshotError> {
    let count = reader.read_len(8)?;
    let substreams =
        (0..count).map(|_| read_substream(reader, plan, mapper)).collect::<Result<Vec<_>, _>>()?;
    check_numbers(&substreams, plan, end, is_finished)?;
    Ok(substreams.into_iter().map(Arc::new).collect())
}

fn read_substream(
    reader: &mut Reader<'_>,
    plan: &Plan,
    mapper: &Mapper,
) -> Result<SealedSubstream, SnapshotError> {
    let number = reader.read_u64()?;
    let capped = if plan.user_room().is_some() {
        reader.read_option()?.map(|capped| capped.min(ITEMS_MAX))
    } else {
        None
    };
    let mapping = mapper.make_mapping(plan, |rows| (0..rows).map(|_| reader.read_u64()).collect())?;
    let levels = Arc::new(read_levels(reader, plan)?);
    let count = reader.read_len(8)?;
    let sketches = (0..count).map(|_| read_sketch(reader, plan, &levels)).collect::<Result<Vec<_>, _>>()?;
    let ranges: BTreeSet<usize> = sketches.iter().map(|(range, _)| *range).collect();
    if ranges.len() < sketches.len() {
        return Err(SnapshotError::invalid("a range occurs twice"));
    }
    Ok(SealedSubstream::from_parts(number, mapping, sketches).with_capped(capped).with_levels(levels))
}

fn read_sketch(
    reader: &mut Reader<'_>,
    plan: &Plan,
    levels: &Levels,
) -> Result<(usize, Arc<SealedSketch>), SnapshotError> {
    let range = reader.read_index(plan.ranges().len(), "a range is not in its plan")?;
    let items = reader.read_option()?.map(|items| items.min(ITEMS_MAX));
    let is_slice = plan.ranges()[range].role() == Role::Slice;
    // An exact total where none may be would be shown by answers (PRIVACY.md: rule 18).
    if items.is_some() != (plan.has_public_totals() && !is_slice) {
        return Err(SnapshotError::invalid("its totals do not fit its unit"));
    }
    let shape = if is_slice { levels.slice_shape(range, plan) } else { plan.shape() };
    let cells = reader.read_cells(shape.cells())?;
    Ok((range, Arc::new(SealedSketch::of_released(shape, &cells, items, plan.width()))))
}

fn read_found(reader: &mut Reader<'_>, plan: &Plan, released: &Released) -> Result<FoundKeys, SnapshotError> {
    let Some(search_plan) = plan.search_plan() else { return Ok(FoundKeys::default()) };
    let (by, kind) = (released.mapping().fingerprint_key, search_plan.kind());
    let counter = FoundCounter { plan, pins: released.pins() };
    let keys = reader.read_keys(kind)?;
    // Keys are looked up by keyed hash, and any other order could show in which one they arrived.
    let is_sorted = keys.is_sorted_by(|a, b| (by.hash_item(*a), a) < (by.hash_item(*b), b));
    let len = keys.len();
    let keys = Keys::collect_kind(kind, keys.into_iter());
    // What the keys count is in no bytes, so nothing can hide in it (PRIVACY.md: rule 38).
    let found = FoundKeys::default().with_counted(&keys, released.substreams(), counter, by);
    if !is_sorted || found.keys().len() < len {
        return Err(SnapshotError::invalid("its found keys are too many or out of order"));
    }
    Ok(found)
}

/// Substreams follow each other, and all but the running one are complete; if the stream is over none is running.
fn check_numbers(
    substreams: &[SealedSubstream],
    plan: &Plan,
    end: u64,
    is_finished: bool,
) -> Result<(), SnapshotError> {
    let follows = substreams.windows(2).all(|pair| pair[0].number.checked_add(1) == Some(pair[1].number));
    let last = substreams.last().map_or(0, |substream| substream.number);
    if !follows || end / plan.substream_len() < last || plan.substreams_kept() + 1 < substreams.len() as u64 {
        return Err(SnapshotError::invalid("its substreams do not follow each other"));
    }
    let whole = |substream: &SealedSubstream| substream.sketch(0).is_some();
    let is_complete = |substream: &&SealedSubstream| substream.number < end / plan.substream_len();
    let is_missing = match is_finished {
        true => !substreams.iter().all(whole),
        false => !substreams.iter().rev().skip(1).filter(is_complete).all(whole),
    };
    if is_missing {
        return Err(SnapshotError::invalid("a complete substream has no whole sketch"));
    }
    Ok(())
}

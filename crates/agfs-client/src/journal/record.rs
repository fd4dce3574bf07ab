//! A record of the journal on disk: its length, a checksum and a message. What a record means is not known here.

use agfs_core::{Error, Result};
use agfs_proto::v1::{JournalRecord, journal_record::Record};
use agfs_proto::{Message, v1};

/// The length of the payload and its CRC-32, both little endian.
const PREFIX: usize = 8;
/// No record is longer, in bytes: a longer length is damage.
const LONGEST: usize = 256 << 20;

/// The bytes of a record. Fails with `ValueTooLarge`.
pub(super) fn encode(record: Record) -> Result<Vec<u8>> {
    let message = JournalRecord { record: Some(record) };
    let len = message.encoded_len();
    if len > LONGEST {
        return Err(Error::new(
            agfs_core::ErrorKind::ValueTooLarge,
            format!("a change of {len} bytes does not fit the journal: at most {LONGEST}"),
        ));
    }
    let mut bytes = Vec::with_capacity(PREFIX + len);
    bytes.extend_from_slice(&[0; PREFIX]);
    message.encode_raw(&mut bytes);
    let sum = crc32fast::hash(bytes.get(PREFIX..).unwrap_or_default());
    let prefix = [(len as u32).to_le_bytes(), sum.to_le_bytes()].concat();
    bytes.splice(..PREFIX, prefix);
    Ok(bytes)
}

/// The record at the beginning of `bytes`, and how long it is; `None` when there is no whole and undamaged one.
pub(super) fn decode(bytes: &[u8]) -> Option<(Record, usize)> {
    let (prefix, rest) = bytes.split_first_chunk::<PREFIX>()?;
    let (len, sum) = prefix.split_first_chunk::<4>()?;
    let len = u32::from_le_bytes(*len) as usize;
    let payload = rest.get(..len).filter(|_| len <= LONGEST)?;
    if crc32fast::hash(payload).to_le_bytes() != sum {
        return None;
    }
    let record = v1::JournalRecord::decode(payload).ok()?.record?;
    Some((record, PREFIX + len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent(counter: u64) -> Record {
        Record::Sent(v1::JournalSent { op_id: Some(v1::OpId { client: 1, counter }), through: counter })
    }

    proptest! {
        #[test]
        fn records_come_back_and_damage_is_seen(counter: u64, at in 0usize..1_000, bit in 0u8..8) {
            let bytes = encode(sent(counter)).unwrap();
            prop_assert_eq!(decode(&bytes), Some((sent(counter), bytes.len())));
            prop_assert_eq!(decode(&bytes[..at % bytes.len()]), None);
            let mut damaged = bytes.clone();
            damaged[at % bytes.len()] ^= 1 << bit;
            prop_assert!(decode(&damaged).is_none_or(|(record, _)| record == sent(counter)));
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = decode(&bytes);
        }
    }
}

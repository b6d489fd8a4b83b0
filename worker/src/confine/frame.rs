//! Messages on a pipe.

use prost::Message;
use std::io::{Error, Read, Result, Write};

/// Longest frame: several times the longest message of a stream.
const FRAME_MAX: u32 = 64 << 20;

/// Writes a message.
pub(super) fn write(to: &mut impl Write, message: &impl Message) -> Result<()> {
    let bytes = message.encode_to_vec();
    let len = u32::try_from(bytes.len()).ok().filter(|len| *len <= FRAME_MAX);
    let len = len.ok_or_else(|| Error::other("a frame that is too long"))?;
    to.write_all(&len.to_le_bytes())?;
    to.write_all(&bytes)?;
    to.flush()
}

/// Reads a message; `None` where the pipe ends.
pub(super) fn read<M: Message + Default>(from: &mut impl Read) -> Result<Option<M>> {
    let mut len = [0; 4];
    if from.read(&mut len[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut len[1..])?;
    let len = u32::from_le_bytes(len);
    if len > FRAME_MAX {
        return Err(Error::other("a frame that is too long"));
    }
    let mut bytes = Vec::new();
    from.take(len.into()).read_to_end(&mut bytes)?;
    match bytes.len() == len as usize {
        true => M::decode(&bytes[..]).map(Some).map_err(Error::other),
        false => Err(Error::other("a frame that is cut")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_proto::v1;

    #[test]
    fn frames_come_back_whole_or_not_at_all() {
        let sent = [v1::KillAck { lease: 7 }, v1::KillAck::default(), v1::KillAck { lease: u64::MAX }];
        let mut pipe = Vec::new();
        sent.iter().for_each(|m| write(&mut pipe, m).unwrap());
        let mut from = &pipe[..];
        for message in &sent {
            assert_eq!(read::<v1::KillAck>(&mut from).unwrap().as_ref(), Some(message));
        }
        assert_eq!(read::<v1::KillAck>(&mut from).unwrap(), None);
        for cut in 1..6 {
            assert!(read::<v1::KillAck>(&mut &pipe[..cut]).is_err(), "{cut}");
        }
        assert!(read::<v1::KillAck>(&mut &[255u8; 8][..]).is_err());
    }
}

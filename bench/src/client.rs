//! The least HTTP client that can hold a conversation: one request, one reply, the connection stays open.
//!
//! A general client would cost several times what it measures. This one knows that our server answers with a
//! Content-Length, allocates nothing per request and makes two system calls.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use memchr::memmem;

use crate::Result;

// fixed: longer than any request may take; a server that hangs must not hang the bench
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

pub struct Reply<'a> {
    pub status: u16,
    pub body: &'a [u8],
}

impl Connection {
    pub fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, received: vec![0; 64 * 1024] })
    }

    /// Sends a whole request and reads its whole reply.
    pub fn exchange(&mut self, request: &[u8]) -> Result<Reply<'_>> {
        self.stream.write_all(request)?;
        let mut length = 0;
        loop {
            let read = self.stream.read(&mut self.received[length..])?;
            if read == 0 {
                return Err("the server closed the connection, or its reply is larger than expected".into());
            }
            length += read;
            if let Some((status, body)) = whole_reply(&self.received[..length])? {
                return Ok(Reply { status, body: &self.received[body..length] });
            }
        }
    }

    /// As [`exchange`](Self::exchange), for whoever expects success.
    pub fn succeed(&mut self, request: &[u8]) -> Result<&[u8]> {
        let reply = self.exchange(request)?;
        if reply.status / 100 != 2 {
            let (status, body) = (reply.status, String::from_utf8_lossy(reply.body));
            return Err(format!("a request was answered with {status}: {body}").into());
        }
        Ok(reply.body)
    }

    /// Sends a request whose reply never ends, and hands over the stream it comes on.
    pub fn stream(mut self, request: &[u8]) -> Result<TcpStream> {
        self.stream.write_all(request)?;
        Ok(self.stream)
    }
}

/// Status and where the body begins, once all of it is there.
fn whole_reply(received: &[u8]) -> Result<Option<(u16, usize)>> {
    let Some(end) = memmem::find(received, b"\r\n\r\n") else { return Ok(None) };
    let (head, body) = (&received[..end], end + 4);
    let number = |digits: Option<&[u8]>| std::str::from_utf8(digits?).ok()?.parse::<usize>().ok();
    let status = number(head.get(9..12));
    let length = memmem::find(head, b"\r\ncontent-length: ").and_then(|at| {
        let rest = &head[at + b"\r\ncontent-length: ".len()..];
        number(rest.split(|byte| *byte == b'\r').next())
    });
    let (Some(status), Some(length)) = (status, length) else {
        return Err(
            format!("a reply this client does not understand: {}", String::from_utf8_lossy(head)).into()
        );
    };
    Ok((received.len() >= body + length).then_some((u16::try_from(status)?, body)))
}

#[cfg(test)]
mod tests {
    use super::whole_reply;

    #[test]
    fn a_reply_is_whole_when_its_body_is() {
        let reply = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx: y\r\n\r\nhi";
        for end in 0..reply.len() {
            assert!(matches!(whole_reply(&reply[..end]), Ok(None)), "at {end}");
        }
        assert!(matches!(whole_reply(reply), Ok(Some((200, body))) if &reply[body..] == b"hi"));
        assert!(whole_reply(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
    }
}

//! How a call says who makes it: `authorization: Bearer TOKEN` in its metadata.

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Status};

/// Adds a token to each call, or nothing.
#[derive(Clone, Default)]
pub struct Token(Option<MetadataValue<Ascii>>);

/// A connection whose calls have a token; what clients are made of.
pub type Linked = InterceptedService<Channel, Token>;

impl Token {
    /// `None`: the text is no token.
    pub fn new(text: &str) -> Option<Self> {
        let mut value: MetadataValue<Ascii> = format!("Bearer {}", text.trim()).parse().ok()?;
        value.set_sensitive(true);
        Some(Self(Some(value)))
    }
}

impl Interceptor for Token {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

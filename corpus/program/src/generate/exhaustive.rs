//! All small programs.

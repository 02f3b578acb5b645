//! The Go template language: lex, parse, compile, run; values; printf.

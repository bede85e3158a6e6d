//! A topic has one reader: others are refused, and copies of its data are fenced.

// Package layering holds the tests that keep dependencies pointing one way: examples, capabilities, processors,
// internal, topics, codec.
package layering

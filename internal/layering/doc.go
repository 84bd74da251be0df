// Package layering contains tests of the module as a whole: dependencies point one way (examples, capabilities,
// processors, internal, topics, codec), programs link nothing that only tests need, and documents match the code.
package layering

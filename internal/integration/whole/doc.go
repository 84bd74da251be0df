// Package whole contains the tests of capabilities that work together as processes, some of which are killed, and those of package
// processors that need a broker and both guarantees. It exports nothing.
package whole

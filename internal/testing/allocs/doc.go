// Command allocs guards the allocations of hot paths. It passes the output of go test -bench through, and fails where a
// benchmark of its baseline allocates more than a tenth more often than it did, or is missing:
//
//	go test -run '^$' -bench . -benchmem ./... | go run ./internal/testing/allocs -baseline FILE [-write]
//
// Allocations are counted, not timed: they are the same on every machine. -write takes what was read for the baseline.
package main

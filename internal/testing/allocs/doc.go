// Command allocs guards the allocations of hot paths. It copies the output of go test -bench and fails if a benchmark of
// the baseline makes over a tenth more allocations than the baseline states, or was not run:
//
//	go test -run '^$' -bench . -benchmem ./... | go run ./internal/testing/allocs -baseline FILE [-write]
//
// Allocations are counted, not timed: they are the same on every machine. -write writes the numbers that were
// read to the baseline.
package main

// Command allocs detects additional allocations in hot paths. It copies the output of go test -bench and fails if a
// benchmark of the baseline makes more than 10 % more allocations than the baseline states, or was not run:
//
//	go test -run '^$' -bench . -benchmem ./... | go run ./internal/testing/allocs -baseline FILE [-write]
//
// The number of allocations is the same on every machine, unlike times. -write updates the baseline with the measured
// numbers.
package main

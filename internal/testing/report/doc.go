// Command report says what test runs and benchmarks have shown.
//
//	go run ./internal/testing/report tests DIRECTORY
//
// lists the tests that failed, and those that failed and then passed, in the files of gotestsum --jsonfile in a directory. The
// output of each failed attempt is written below DIRECTORY/failures, and the list names the file.
//
//	go test -run '^$' -bench . -benchmem ./... | go run ./internal/testing/report allocs -baseline FILE [-write]
//
// detects additional allocations in hot paths. It copies the output of go test -bench and fails if a benchmark of the baseline
// makes more than 10 % more allocations than the baseline states, or was not run. The number of allocations is the same on
// every machine, unlike times. -write updates the baseline with the measured numbers.
package main

//go:build race

package layering_test

// buildFlags are those of the running tests, so that what `go test` has compiled is not compiled again.
var buildFlags = []string{"-race"}

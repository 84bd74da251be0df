// Package leaktest lists goroutines of libraries that goleak must ignore in tests.
package leaktest

import "go.uber.org/goleak"

// Libraries returns options with which goleak ignores these goroutines: that of Sarama's metrics, which runs as long as
// the process, and that of a closed LevelDB, which frees its buffers a second later.
func Libraries() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"),
		goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"),
	}
}

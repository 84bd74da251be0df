// Package leaktest lists goroutines of libraries that goleak must ignore in tests.
package leaktest

import "go.uber.org/goleak"

// Libraries returns the options with which goleak ignores these goroutines: that of Sarama's metrics, which never stops, and
// that of a closed LevelDB, which stops after a second.
func Libraries() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"),
		goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"),
	}
}

// Package leaktest names the goroutines of libraries that outlive what started them, for goleak in tests.
package leaktest

import "go.uber.org/goleak"

// Libraries are goleak's exceptions: Sarama's metrics have one goroutine for the whole process, and a closed LevelDB
// gives its buffers back a second later.
func Libraries() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"),
		goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"),
	}
}

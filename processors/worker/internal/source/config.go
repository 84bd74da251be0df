package source

import (
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
)

// AbandonAfter bounds how long the core waits for a handler that ignores the end of its context. The handler's goroutine
// continues; its result has no effect.
const AbandonAfter = time.Second

// Config has what both sources need. The core validates it and fills in the defaults: no field but Waiting has its zero value.
type Config struct {
	Brokers []string
	Group   string
	Topics  []string
	// Client returns a new configuration at every call, which the source may change. It has TLS, SASL, client ID and
	// timeouts as the user set them.
	Client func() *sarama.Config
	// Concurrency is how many records are handled at a time, over all partitions, not counting those that wait.
	Concurrency int
	// Waiting is how many records may wait. A source acquires no records for which it has no place.
	Waiting int
	// Crowded reports whether the records that are handled are so unevenly distributed that records of other sessions should
	// be acquired, although there is no place for another call. It does not block.
	Crowded func() bool
	Clock   clock.Clock
	Logger  *zap.Logger
}

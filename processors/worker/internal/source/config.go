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

// Config has what both sources need. The core validates it and fills in the defaults: no field has its zero value.
type Config struct {
	Brokers []string
	Group   string
	Topics  []string
	// Client returns a new configuration at every call, which the source may change. It has TLS, SASL, client ID and
	// timeouts as the user set them.
	Client func() *sarama.Config
	// Concurrency is how many calls of Handle run at a time, over all partitions.
	Concurrency int
	Clock       clock.Clock
	Logger      *zap.Logger
}

package turn

import (
	"context"

	"github.com/turntable-streams/turntable/processors"
)

// Publisher writes records. It returns nil when the brokers have acknowledged all of them. *processors.Publisher
// implements it.
type Publisher interface {
	Publish(ctx context.Context, records ...processors.Outbound) error
}

package crewhttp

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
)

// pastTimeout is how long new events wait for those of the past.
const pastTimeout = 20 * time.Second

// Run reads the tables and the events until ctx ends. Then it disconnects all WebSocket clients with status 1001 and returns
// nil. It reads committed records only and belongs to no consumer group: the tables from their beginnings, the events of the
// last time (Config.History) and all that follow. It waits for brokers that are unavailable and for topics that do not exist. opts
// are the connection options of processors.New. Run may be called once. A second call, and invalid options, return errors that
// wrap ErrConfig.
func (x *Index) Run(ctx context.Context, brokers []string, opts ...processors.Option) error {
	return x.follows.Run(ctx, brokers, x.config.Logger, opts, x.flushLate)
}

// past reads the events that were written before Run, while new events wait.
type past struct {
	index *Index

	over chan struct{} // closed when the past is read
	end  func()        // closes over
	next sync.Map      // partition -> offset after the last event of the past
}

// onEvent is called for each new event. It waits until the past is read, but not for long: the follower cannot connect again
// meanwhile.
func (p *past) onEvent(r processors.Inbound) {
	select {
	case <-p.over:
	default:
		timer := time.NewTimer(pastTimeout)
		select {
		case <-p.over:
		case <-timer.C:
			p.end()
		case <-p.index.follows.Ended:
		}
		timer.Stop()
	}
	if next, ok := p.next.Load(r.Partition); ok && r.Offset < next.(int64) {
		return
	}
	p.index.onEvent(r)
}

// read passes the events of the last time to the index. Without them clients cannot resume, but see what is new.
func (p *past) read(ctx context.Context, events *processors.Follower) {
	defer p.end()
	x := p.index
	topic := x.catalog.CrewEvents.Name()
	partitions, err := events.Partitions(topic)
	since := time.Now().Add(-x.config.History.Window)
	for _, partition := range partitions {
		var begin, next int64
		if begin, err = events.OffsetAt(topic, partition, since); err != nil {
			break
		}
		next, err = events.ReplayFrom(ctx, topic, partition, begin, func(_ context.Context, r processors.Inbound) bool {
			x.onEvent(r)
			select {
			case <-p.over: // new events could wait no longer
				return false
			default:
				return true
			}
		})
		if err != nil {
			break
		}
		p.next.Store(partition, next)
	}
	if err != nil && ctx.Err() == nil {
		x.config.Logger.Warn("crew door begins without past events", zap.String("topic", topic), zap.Error(err))
	}
}

// onEvent applies a record of the topic of events. One that cannot be decoded is left out.
func (x *Index) onEvent(r processors.Inbound) {
	if r.Value == nil {
		return
	}
	d := x.catalog.CrewEvents.Codec().Unmarshal(r.Value)
	if d.Err != nil {
		x.config.Logger.Warn("crew door cannot read an event", zap.String("topic", r.Topic), zap.Int32("partition", r.Partition),
			zap.Int64("offset", r.Offset), zap.Error(d.Err))
		return
	}
	x.apply(d.Value)
}

// Package tableindex is what the doors have in common that answer from memory. Their indexes follow topics, most of them tables of
// groups; are ready once they have read them; catch up with the brokers before they say that something is unknown; and read single
// records again, because they do not keep all rows.
package tableindex

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

const (
	// wait bounds how long a request waits for the brokers.
	wait = 5 * time.Second
	// maxReads is how many records are read again at the same time.
	maxReads = 8
)

// Index follows sources. Its methods are safe for concurrent use.
type Index struct {
	// Ready is closed once all sources that are not optional are read.
	Ready chan struct{}
	// Ended is closed when the context of Run ends, or Run returns. The sources take a moment to end.
	Ended chan struct{}
	// Stop, if it is not nil, is called when Run returns, also after an error, but not by a second call.
	Stop func()

	invalid, notReady error
	sources           []*Source
	started           atomic.Bool
	reading           *entrance.Slots
}

// Source is topics that an Index reads with one follower. The exported fields are set before Run.
type Source struct {
	Topics []string
	// Handle is called for each record: see processors.NewFollower.
	Handle func(processors.Inbound)
	// New leaves out the records that were written before Run. Otherwise the topics are read from their beginnings.
	New bool
	// Optional is for topics that may not exist. The index is ready without them, and that they cannot be read is not logged.
	Optional bool
	// Then, if it is not nil, is called when the source is read. The index is not ready until it returns.
	Then func(context.Context, *processors.Follower)

	index    *Index
	follower atomic.Pointer[processors.Follower] // nil before Run
}

// New returns an index. The errors of Run wrap invalid, and those of the methods of its sources notReady.
func New(invalid, notReady error, sources ...*Source) *Index {
	x := &Index{
		Ready: make(chan struct{}), Ended: make(chan struct{}), invalid: invalid, notReady: notReady, sources: sources,
		reading: entrance.NewSlots(maxReads),
	}
	for _, s := range sources {
		s.index = x
	}
	return x
}

// Run reads the sources and runs the functions also until ctx ends, and then returns nil. It returns an error for invalid options,
// and if it is called a second time. The logger is used unless opts have another one.
func (x *Index) Run(
	ctx context.Context, brokers []string, logger *zap.Logger, opts []processors.Option, also ...func(context.Context),
) error {
	if !x.started.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: Run may be called only once", x.invalid)
	}
	if x.Stop != nil {
		defer x.Stop()
	}
	end := sync.OnceFunc(func() { close(x.Ended) })
	defer end()
	defer context.AfterFunc(ctx, end)()
	for _, s := range x.sources {
		if err := s.open(brokers, logger, opts); err != nil {
			return fmt.Errorf("%w: %w", x.invalid, err)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range x.sources {
		group.Go(func() error { return s.Follower().Run(ctx) })
	}
	for _, f := range append(also, x.becomeReady) {
		group.Go(func() error {
			f(ctx)
			return nil
		})
	}
	return group.Wait()
}

func (s *Source) open(brokers []string, logger *zap.Logger, opts []processors.Option) error {
	follow := processors.NewTableFollower
	if s.New {
		follow = processors.NewFollower
	}
	opts = append([]processors.Option{processors.WithLogger(logger)}, opts...)
	if s.Optional {
		opts = append(opts, processors.WithLogger(zap.NewNop()))
	}
	f, err := follow(brokers, s.Topics, s.Handle, opts...)
	s.follower.Store(f)
	return err
}

func (x *Index) becomeReady(ctx context.Context) {
	for _, s := range x.sources {
		if s.Optional {
			continue
		}
		select {
		case <-s.Follower().Ready():
		case <-ctx.Done():
			return
		}
		if s.Then != nil {
			s.Then(ctx, s.Follower())
		}
	}
	close(x.Ready)
}

// IsReady reports whether Ready is closed.
func (x *Index) IsReady() bool { return Closed(x.Ready) }

// Serves reports whether Ready is closed, and Ended is not.
func (x *Index) Serves() bool { return Closed(x.Ready) && !Closed(x.Ended) }

// Closed reports whether a channel is closed that nothing is sent to.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Follower returns what reads the source, nil before Run.
func (s *Source) Follower() *processors.Follower { return s.follower.Load() }

// Replay is Follower.Replay. It fails before Run.
func (s *Source) Replay(
	ctx context.Context, topic, key string, since time.Time, take func(context.Context, processors.Inbound) (more bool),
) (next int64, err error) {
	if from := s.Follower(); from != nil {
		return from.Replay(ctx, topic, key, since, take)
	}
	return 0, s.index.notReady
}

// CatchUp is that of every source that is not optional, in their order, for 5 s at most in all. Sources of records that announce rows
// precede those of the rows: then a row that is neither announced nor read does not exist.
func (x *Index) CatchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for _, s := range x.sources {
		if s.Optional {
			continue
		}
		if err := s.CatchUp(ctx); err != nil {
			return err
		}
	}
	return nil
}

// CatchUp blocks until the index has every record of the source that was committed when CatchUp was called, for 5 s at most.
func (s *Source) CatchUp(ctx context.Context) error {
	from := s.Follower()
	if from == nil {
		return s.index.notReady
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case <-from.Ready(): // that of an optional source may be later than that of the index
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", s.index.notReady, ctx.Err())
	}
	for _, topic := range s.Topics {
		if err := from.CatchUpTopic(ctx, topic); err != nil {
			return fmt.Errorf("%w: %w", s.index.notReady, err)
		}
	}
	return nil
}

// Read reads a record of the source's only topic again, from the brokers. ok is false if they have it no longer. Read takes 5 s at
// most. When too many records are read, callers take turns.
func (s *Source) Read(
	ctx context.Context, caller string, partition int32, offset int64,
) (r processors.Inbound, ok bool, err error) {
	return s.ReadOf(ctx, caller, s.Topics[0], partition, offset)
}

// ReadOf is Read for a record of one of the source's topics.
func (s *Source) ReadOf(
	ctx context.Context, caller, topic string, partition int32, offset int64,
) (r processors.Inbound, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err := s.index.reading.Acquire(ctx, caller); err != nil {
		return r, false, fmt.Errorf("%w: %w", s.index.notReady, err)
	}
	defer s.index.reading.Release()
	from := s.Follower()
	if from == nil {
		return r, false, s.index.notReady
	}
	_, err = from.ReplayRange(ctx, topic, partition, offset, offset+1,
		func(_ context.Context, found processors.Inbound) bool {
			r, ok = found, found.Offset == offset
			return false
		})
	if err != nil {
		return r, false, fmt.Errorf("%w: %w", s.index.notReady, err)
	}
	return r, ok, nil
}

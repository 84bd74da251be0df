package instance

import (
	"errors"
	"sync"

	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"

	"github.com/turntable-streams/turntable/internal/cut"
	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/internal/store"
)

// tables are the stores of one run: those of the group table's partitions with their layers and due-indexes, and those
// of joined and lookup tables.
type tables struct {
	group  string
	table  func(topic string, partition int32) (*store.Store, error)
	others func(topic string, partition int32) (*store.Store, error)

	dir     string
	topicID func(topic string) (string, error)
	ages    *ages

	mu   sync.Mutex
	open map[int32]*store.Store // of the group table, recovered
	// reading are the partitions that are not recovered yet.
	reading map[int32]*reading
	// kept are the in-memory stores of the last generation, for the next one to reopen.
	kept map[int32]kept
}

// kept is a closed store in memory and the topic it was filled from.
type kept struct {
	store *store.Store
	topic string // its id
}

// reading is a partition of the group table that is being recovered.
type reading struct {
	store *store.Store
	end   int64 // 0 until it is known
}

func newTables(cfg Config, timed store.Timed, topicID func(string) (string, error), ages *ages) *tables {
	t := &tables{
		group: string(goka.GroupTable(cfg.Graph.Group())), dir: cfg.StorageDir, topicID: topicID, ages: ages,
		open: map[int32]*store.Store{}, reading: map[int32]*reading{}, kept: map[int32]kept{},
	}
	t.others = store.Builder(cfg.StorageDir, store.WithThrough())
	var own []store.Option
	if timed != nil {
		own = append(own, store.WithDeadline(timed.Deadline))
	}
	if edge := cfg.Graph.GroupTable(); edge != nil {
		if _, frozen := edge.Codec().(runtimeapi.Frozen); frozen {
			own = append(own, store.WithShared())
		}
	}
	t.table = store.Builder(cfg.StorageDir, own...)
	return t
}

// build is Goka's storage builder.
func (t *tables) build(topic string, partition int32) (storage.Storage, error) {
	name, err := t.checkTopic(topic, partition)
	if topic != t.group && errors.Is(err, ErrRecreated) {
		// Another group's table can be read again from its topic. The rows of the group's own table may exist only here.
		t.ages.named(topic, partition).Info("the local store is discarded: its topic was deleted and recreated")
		if err = store.Remove(t.path(topic, partition)); err == nil {
			name, err = t.checkTopic(topic, partition)
		}
	}
	if err != nil {
		return nil, err
	}
	s, err := t.ages.build(topic, partition, func() (*store.Store, error) {
		if topic != t.group {
			return t.others(topic, partition)
		}
		if s, err := t.reopen(partition, name.id); s != nil || err != nil {
			return s, err
		}
		return t.table(topic, partition)
	})
	if err != nil {
		return nil, err
	}
	if err := name.keep(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if topic != t.group {
		return s, nil
	}
	t.mu.Lock()
	t.reading[partition] = &reading{store: s.Store}
	t.mu.Unlock()
	return &owned{aged: s, tables: t, topicID: name.id}, nil
}

// reopen returns the in-memory store of an earlier generation, or nil. With it a rebalance does not read a table again for
// a partition that stays; recovery reads the rest from the store's offset on, as with a store on disk.
func (t *tables) reopen(partition int32, topic string) (*store.Store, error) {
	t.mu.Lock()
	k, ok := t.kept[partition]
	delete(t.kept, partition)
	t.mu.Unlock()
	if !ok || k.topic != topic {
		return nil, nil
	}
	return k.store.Reopen()
}

// running drops the in-memory stores of partitions that the running generation does not have.
func (t *tables) running() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.kept)
}

// owned is a store of the group table. It is in tables.open from its recovery until Goka closes it.
type owned struct {
	*aged
	tables  *tables
	topicID string
	left    bool // the store was closed; guarded by the tables' mutex
}

// MarkRecovered implements storage.Storage.
func (o *owned) MarkRecovered() error {
	if err := o.aged.MarkRecovered(); err != nil {
		return err
	}
	o.tables.mu.Lock()
	defer o.tables.mu.Unlock()
	o.tables.forgetReading(o)
	if !o.left { // Goka does not wait for MarkRecovered when the session ends
		o.tables.open[o.partition] = o.Store
	}
	return nil
}

// Close implements storage.Storage.
func (o *owned) Close() error {
	o.tables.mu.Lock()
	o.left = true
	o.tables.forgetReading(o)
	if o.tables.open[o.partition] == o.Store {
		delete(o.tables.open, o.partition)
	}
	o.tables.mu.Unlock()
	err := o.aged.Close()
	if err == nil && o.Path() == "" {
		o.tables.mu.Lock()
		defer o.tables.mu.Unlock()
		o.tables.kept[o.partition] = kept{store: o.Store, topic: o.topicID}
	}
	return err
}

func (t *tables) layers() []cut.Layer {
	t.mu.Lock()
	defer t.mu.Unlock()
	layers := make([]cut.Layer, 0, len(t.open))
	for _, s := range t.open {
		layers = append(layers, s)
	}
	return layers
}

// index returns the deadlines of a partition, nil if it is not open.
func (t *tables) index(partition int32) *store.DueIndex {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.open[partition]; s != nil {
		return s.Due()
	}
	return nil
}

func (t *tables) next(partition int32) (ms int64, ok bool) {
	if x := t.index(partition); x != nil {
		return x.Next()
	}
	return 0, false
}

func (t *tables) due(partition int32, now int64, limit int) []store.DueEntry {
	if x := t.index(partition); x != nil {
		return x.PopDue(now, limit)
	}
	return nil
}

// rows returns the store of a recovered partition, or nil if it is not open.
func (t *tables) rows(partition int32) cut.Rows {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.open[partition]; s != nil {
		return s
	}
	return nil
}

// rowStored records the changelog offset of a row in its store. It ignores a closed store.
func (t *tables) rowStored(partition int32, offset int64, sealed bool) error {
	t.mu.Lock()
	s := t.open[partition]
	t.mu.Unlock()
	if s == nil {
		return nil
	}
	set := s.SetOffset
	if sealed {
		set = s.SetSealedOffset
	}
	if err := set(offset); !errors.Is(err, store.ErrClosed) {
		return err
	}
	return nil
}

// get reads a row of a recovered partition. It returns ErrNotRunning if the partition is not recovered here.
func (t *tables) get(partition int32, key string) ([]byte, error) {
	t.mu.Lock()
	s := t.open[partition]
	t.mu.Unlock()
	if s == nil {
		return nil, ErrNotRunning
	}
	return s.Get(key)
}

// forgetReading is called with the mutex held.
func (t *tables) forgetReading(o *owned) {
	if r := t.reading[o.partition]; r != nil && r.store == o.Store {
		delete(t.reading, o.partition)
	}
}

// stored returns the offset up to which a partition's store has read, or -1 for nothing.
func (t *tables) stored(topic string, partition int32) int64 {
	t.mu.Lock()
	r := t.reading[partition]
	t.mu.Unlock()
	if topic != t.group || r == nil {
		return -1
	}
	offset, err := r.store.GetOffset(-1)
	if err != nil {
		return -1
	}
	return offset
}

// ended records the offset at which Goka will stop reading a partition.
func (t *tables) ended(topic string, partition int32, end int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.reading[partition]; r != nil && topic == t.group {
		r.end = end
	}
}

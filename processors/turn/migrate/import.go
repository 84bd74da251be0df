package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/topics"
)

// Result is what Import or Export has done.
type Result struct {
	// Already reports that an earlier call had completed the import. The other fields are zero then.
	Already bool
	// Sessions is the number of sessions that were written by this call, and Skipped that of the records that were skipped:
	// those without a key, and those that cannot be read.
	Sessions, Skipped int
}

// Import writes the sessions that FlightDeck's processing application knows into the table of the turn's group. It blocks
// until they are written, or until another process has written them. opts are the options of the group's processor, with
// WithTopics; turns is the Config of its graph.
//
// It returns ErrActive, ErrRows, ErrOffsets, ErrPartitions or ErrExported if it must not run; nothing is written then. After
// any other error, and after a kill, it may be called again and continues. The group must not run before Import has
// returned nil.
func Import(ctx context.Context, brokers []string, catalog topics.Catalog, turns turn.Config, opts ...processors.Option,
) (Result, error) {
	m, err := newMigration(brokers, catalog, opts)
	if err != nil {
		return Result{}, err
	}
	return m.run(ctx, turns, opts)
}

func (m *migration) run(ctx context.Context, turns turn.Config, opts []processors.Option) (result Result, err error) {
	rows, err := turn.NewImporter(turns)
	if err != nil {
		return Result{}, err
	}
	if err := processors.EnsureTopics(ctx, m.brokers, opts...); err != nil {
		return Result{}, err
	}
	err = m.connect(ctx, opts, func(ctx context.Context) error {
		switch p, err := m.progress(); {
		case err != nil:
			return err
		case p.is(completed):
			result.Already = true
			return nil
		case p.is(exported):
			return m.wasExported()
		}
		return m.alone(ctx, func(ctx context.Context, member *sarama.ConsumerGroupMetadata) (err error) {
			result, err = m.importAll(ctx, member, rows)
			return err
		})
	})
	return result, err
}

func newMigration(brokers []string, catalog topics.Catalog, opts []processors.Option) (*migration, error) {
	conf, logger, err := processors.ClientConfig(brokers, opts...)
	if err != nil {
		return nil, err
	}
	return &migration{brokers: brokers, catalog: catalog, conf: conf, logger: logger, reached: func(string) {}}, nil
}

func (m *migration) wasExported() error {
	return fmt.Errorf("%w to FlightDeck after an earlier import; to import again, delete the topic %s and the group %s",
		ErrExported, m.catalog.Table(), m.catalog.HistoryImportGroup())
}

// importAll is the import in the process that the others wait for.
func (m *migration) importAll(ctx context.Context, member *sarama.ConsumerGroupMetadata, rows *turn.Importer,
) (result Result, err error) {
	// First of all: it ends the transactions of a process that imported before and may not know that it was replaced.
	w, err := m.writer(member)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	p, err := m.progress()
	switch {
	case err != nil:
		return Result{}, err
	case p.is(completed):
		return Result{Already: true}, nil
	case p.is(exported):
		return Result{}, m.wasExported()
	}
	partitions, err := m.partitions(m.catalog.Table())
	if err != nil {
		return Result{}, err
	}
	if p, err = m.begin(ctx, w, p, partitions); err != nil {
		return Result{}, err
	}
	m.reached("begun")
	started := time.Now()
	x := newIndex()
	first := &scan{
		name: "first pass", topic: m.source(), told: started,
		take: func(key string, at place, ms int64, r topics.ThinkResponse) bool { x.add(key, at, ms, r); return true },
		gone: x.remove,
	}
	for _, partition := range partitions {
		if err := m.scan(ctx, first, partition, 0, p[partition].End); err != nil {
			return Result{}, err
		}
	}
	stored, ends, skipped, err := m.stored(ctx, x)
	if err != nil {
		return Result{}, err
	}
	m.reached("indexed")
	result.Skipped = first.skipped + skipped
	if result.Sessions, err = m.writeRows(ctx, w, p, x, rows, pass{m.source(), p.ends()}); err != nil {
		return Result{}, err
	}
	older, err := m.writeRows(ctx, w, p, stored, rows, pass{m.catalog.FlightDeckStore(), ends})
	if err != nil {
		return Result{}, err
	}
	result.Sessions += older
	m.reached("written")
	if err := m.unchanged(p, partitions); err != nil {
		return Result{}, err
	}
	if err := w.commit(ctx, p.in(completed)); err != nil {
		return Result{}, err
	}
	m.keep(p.in(completed), member)
	m.logger.Info("histories imported", zap.Int("sessions", result.Sessions), zap.Int("skipped", result.Skipped),
		zap.Duration("took", time.Since(started)))
	return result, nil
}

// begin checks that the import may run. If it has not begun before, it records where it ends.
func (m *migration) begin(ctx context.Context, w *writer, p progress, partitions []int32) (progress, error) {
	if err := m.idle(); err != nil {
		return nil, err
	}
	for _, partition := range partitions {
		if err := m.onlyImported(ctx, partition); err != nil {
			return nil, err
		}
	}
	if len(p) > 0 {
		m.logger.Info("import of histories continues")
		return p, m.unchanged(p, partitions)
	}
	ends, err := m.ends(partitions)
	if err != nil {
		return nil, err
	}
	p = progress{}
	for partition, end := range ends {
		p[partition] = position{mark: mark{importing, end}}
		newest, err := m.client.GetOffset(m.source(), partition, sarama.OffsetNewest)
		if err != nil {
			return nil, fmt.Errorf("migrate: end of %s/%d: %w", m.source(), partition, err)
		}
		if newest > end {
			m.logger.Warn("FlightDeck has stopped before it had processed all responses: the turn dead-letters those that answer "+
				"a step of FlightDeck", zap.String("topic", m.source()), zap.Int32("partition", partition),
				zap.Int64("committed", end), zap.Int64("end", newest))
		}
	}
	if err := w.commit(ctx, p); err != nil {
		return nil, err
	}
	m.logger.Info("import of histories begins")
	return p, nil
}

// unchanged returns an error if the group of the turn has run since the import began.
func (m *migration) unchanged(p progress, partitions []int32) error {
	if err := m.idle(); err != nil {
		return err
	}
	ends, err := m.ends(partitions)
	if err != nil {
		return err
	}
	for _, partition := range partitions {
		if at := p[partition].End; ends[partition] != at {
			return fmt.Errorf("%w: group %s was at %d of %s/%d when the import began and is at %d now; delete the topic %s and "+
				"the group %s to begin again", ErrOffsets, m.catalog.Group(), at, m.source(), partition, ends[partition],
				m.catalog.Table(), m.catalog.HistoryImportGroup())
		}
	}
	return nil
}

// onlyImported returns ErrRows if the table has rows that Import has not written.
func (m *migration) onlyImported(ctx context.Context, partition int32) error {
	foreign := int64(-1)
	table := m.catalog.Table()
	_, err := m.reader.ReplayFrom(ctx, table, partition, 0, func(_ context.Context, r processors.Inbound) bool {
		if r.Header(HeaderImport) == nil {
			foreign = r.Offset
		}
		return foreign < 0
	})
	switch {
	case err != nil:
		return fmt.Errorf("migrate: read %s/%d: %w", table, partition, err)
	case foreign >= 0:
		return fmt.Errorf("%w: %s/%d at offset %d; the turn has run before, so nothing is imported: start without the import",
			ErrRows, table, partition, foreign)
	}
	return nil
}

// pass is what the second pass reads: a topic up to the ends of its partitions.
type pass struct {
	topic string
	ends  map[int32]int64
}

// writeRows is the second pass: it reads the records of the histories again and writes the rows of their sessions. It returns
// the number of rows. Only the progress in the source is recorded: that in FlightDeck's store is repeated after a kill.
func (m *migration) writeRows(ctx context.Context, w *writer, p progress, x *index, rows *turn.Importer, from pass,
) (written int, err error) {
	write := func(key string, s session, records []*topics.ThinkResponse) error {
		if err := m.addRow(w, rows, key, s, records); err != nil {
			return err
		}
		written++
		if !w.full() {
			return nil
		}
		// A turn that runs by now would lose what it has written since.
		if err := m.idle(); err != nil {
			return err
		}
		if err := w.commit(ctx, p); err != nil {
			return err
		}
		m.reached("committed rows")
		return nil
	}
	recorded := p
	if from.topic != m.source() {
		recorded = nil
	}
	begins := x.remaining(recorded)
	for key, s := range x.sessions {
		if len(s.places()) == 0 { // its cost is known, and no history
			if err := write(key, s, nil); err != nil {
				return 0, err
			}
		}
	}
	h := newHistories(x)
	var failed error
	second := &scan{name: "second pass", topic: from.topic, told: time.Now(), wanted: h.wants}
	second.take = func(key string, at place, _ int64, r topics.ThinkResponse) bool {
		records, done := h.add(key, at, r)
		if !done {
			return true
		}
		if now, ok := recorded[at.partition]; ok {
			now.next = at.offset + 1
			recorded[at.partition] = now
		}
		failed = write(key, x.sessions[key], records)
		return failed == nil
	}
	for _, partition := range slices.Sorted(maps.Keys(from.ends)) {
		begin, ok := begins[partition]
		if !ok {
			continue
		}
		if err := m.scan(ctx, second, partition, begin, from.ends[partition]); err != nil {
			return 0, err
		}
		if failed != nil {
			return 0, failed
		}
	}
	return written, w.commit(ctx, p)
}

// remaining forgets the sessions whose rows are written, and returns the first record that is needed in each partition.
func (x *index) remaining(p progress) map[int32]int64 {
	begins := map[int32]int64{}
	for key, s := range x.sessions {
		places := s.places()
		written := len(places) > 0
		last := place{partition: -1}
		for _, at := range places { // the last that the second pass reads
			if at.partition > last.partition || at.partition == last.partition && at.offset > last.offset {
				last = at
			}
		}
		if written && last.offset < p[last.partition].next {
			delete(x.sessions, key)
			continue
		}
		for _, at := range places {
			begin, ok := begins[at.partition]
			if !ok {
				begin = math.MaxInt64
			}
			begins[at.partition] = min(begin, at.offset)
		}
	}
	return begins
}

// addRow adds the row of a session and its parts to the next transaction.
func (m *migration) addRow(w *writer, rows *turn.Importer, key string, s session, records []*topics.ThinkResponse) error {
	row, parts, err := rows.Row(imported(s, records), time.UnixMilli(s.at))
	if err != nil || row == nil {
		return err
	}
	header := sarama.RecordHeader{Key: []byte(HeaderImport), Value: []byte("1")}
	for _, part := range parts {
		w.add(m.catalog.Table(), runtimeapi.PartKey(key, part.Number), part.Value, time.Time{}, header)
	}
	w.add(m.catalog.Table(), key, row, time.Time{}, header)
	return nil
}

package migrate

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/runtimeapi"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// tellEvery is the time between two log lines about the progress.
const tellEvery = 5 * time.Second

// scan reads the records of a partition of a topic from begin on, before end. It passes to take those with a key and a
// value that can be read, and to gone the keys of tombstones. wanted says which records are decoded; nil: all.
type scan struct {
	name   string // of the pass, for the log
	topic  string
	wanted func(key string, p place) bool
	take   func(key string, p place, at int64, r topics.ThinkResponse) (more bool)
	gone   func(key string, p place, at int64)

	skipped int // records without a key, or that cannot be read
	read    int64
	told    time.Time
}

func (m *migration) scan(ctx context.Context, s *scan, partition int32, begin, end int64) error {
	codec := m.catalog.ThinkRequestResponse.Codec()
	_, err := m.reader.ReplayFrom(ctx, s.topic, partition, begin, func(ctx context.Context, r processors.Inbound) bool {
		if r.Offset >= end {
			return false
		}
		s.read++
		if now := time.Now(); now.Sub(s.told) >= tellEvery {
			m.logger.Info("import of histories: "+s.name, zap.String("topic", s.topic), zap.Int32("partition", partition), zap.Int64("offset", r.Offset),
				zap.Int64("end", end), zap.Int64("records", s.read))
			s.told = now
		}
		p, at := place{partition, r.Offset}, r.Timestamp.UnixMilli()
		switch {
		case len(r.Key) == 0:
			s.skip(m, p, "it has no key")
		case runtimeapi.IsPart(string(r.Key)): // its row would count as a part of another session's
			s.skip(m, p, "its key contains a NUL byte")
		case r.Value == nil || string(r.Value) == "null":
			if s.gone != nil {
				s.gone(string(r.Key), p, at)
			}
		case s.wanted != nil && !s.wanted(string(r.Key), p):
		default:
			answer := codec.Unmarshal(r.Value)
			if answer.Err != nil {
				s.skip(m, p, "it cannot be read")
				break
			}
			return s.take(string(r.Key), p, at, answer.Value)
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("migrate: read %s/%d from %d: %w", s.topic, partition, begin, err)
	}
	return nil
}

// skip counts and logs a record. The codec's error is left out, because it may quote the record.
func (s *scan) skip(m *migration, p place, why string) {
	s.skipped++
	if s.wanted == nil { // the first pass
		m.logger.Warn("import of histories: record skipped", zap.String("topic", s.topic), zap.Int32("partition", p.partition),
			zap.Int64("offset", p.offset), zap.String("reason", why))
	}
}

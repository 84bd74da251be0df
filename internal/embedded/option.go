package embedded

import (
	"time"

	"go.uber.org/zap"
)

type settings struct {
	dir        string
	partitions int
	recordLock time.Duration
	logger     *zap.Logger
}

// Option configures Start.
type Option func(*settings)

// WithDirectory keeps topics, records, committed offsets and static group members in a directory, which is created if
// it is missing. One broker at a time can use it: see ErrLocked. The default, and the empty name, keeps them in memory.
func WithDirectory(dir string) Option { return func(s *settings) { s.dir = dir } }

// WithPartitions sets the partition count of topics that are created with the broker's default. n must be positive.
// Default: 1.
func WithPartitions(n int) Option { return func(s *settings) { s.partitions = n } }

// WithLogger logs the broker's warnings and errors. The default logs nothing.
func WithLogger(l *zap.Logger) Option { return func(s *settings) { s.logger = l } }

// WithRecordLock sets how long a record of a share group is locked without a renewal, in whole milliseconds; it must be
// positive. The broker has one lock for all groups and ignores the setting of a group. The default is Kafka's, 30 s.
func WithRecordLock(d time.Duration) Option { return func(s *settings) { s.recordLock = d } }

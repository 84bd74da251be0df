package settings

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/internal/reload"
)

// File is settings in a file that may change. It is safe for concurrent use, starts no goroutine, and need not be closed.
type File struct{ value *reload.Value[Settings] }

// Option configures Open.
type Option func(*options)

type options struct{ logger *zap.Logger }

// WithLogger sets the logger for changes of the file (default: none). Values of the file are not logged. It must not be nil.
func WithLogger(l *zap.Logger) Option { return func(o *options) { o.logger = l } }

// Open reads a file. Its error names the file. It wraps ErrSettings for a mistake in the content, and otherwise says why the
// file cannot be read. The method Settings of the result is a Live.
func Open(path string, opts ...Option) (*File, error) {
	o := options{logger: zap.NewNop()}
	for _, opt := range opts {
		opt(&o)
	}
	if o.logger == nil {
		return nil, errors.New("settings: WithLogger: want a logger")
	}
	again := func(contents [][]byte, old *Settings) (*Settings, error) {
		s, blank, err := parse(contents[0])
		if err == nil && old != nil && blank {
			return nil, fmt.Errorf("%w: the file is empty; want accounts: [] for no accounts", ErrSettings)
		}
		return s, err
	}
	value, err := reload.Open(again, time.Now, o.logger, path)
	if err != nil {
		return nil, fmt.Errorf("settings: open %s: %w", path, err)
	}
	return &File{value: value}, nil
}

// Settings returns what the file says now. It reads the file, and parses it if its content has changed; concurrent calls wait
// for one another. Call it once for each message and keep the result for the message. If the file cannot be used, or is
// empty, the result is what was loaded before. Replace the file by renaming another one: half of a file may be usable.
func (f *File) Settings() *Settings { return f.value.Latest() }

package channel

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/internal/reload"
)

// SettingsFile is settings in a file that may change. It is safe for concurrent use, starts no goroutine, and need not be closed.
type SettingsFile struct{ value *reload.Value[Settings] }

// OpenSettings reads a file. Its error names the file. It wraps ErrSettings for a mistake in the content, and otherwise says why the
// file cannot be read. The method Settings of the result is a Live. logger is for changes of the file (nil: they are not logged);
// values of the file are not logged.
func OpenSettings(path string, logger *zap.Logger) (*SettingsFile, error) {
	if logger == nil {
		logger = zap.NewNop()
	}
	again := func(contents [][]byte, old *Settings) (*Settings, error) {
		s, blank, err := parse(contents[0])
		if err == nil && old != nil && blank {
			return nil, fmt.Errorf("%w: the file is empty; want accounts: [] for no accounts", ErrSettings)
		}
		return s, err
	}
	value, err := reload.Open(again, time.Now, logger, path)
	if err != nil {
		return nil, fmt.Errorf("channel: open settings %s: %w", path, err)
	}
	return &SettingsFile{value: value}, nil
}

// Settings returns what the file says now. It reads the file, and parses it if its content has changed; concurrent calls wait
// for one another. Call it once for each message and keep the result for the message. If the file cannot be used, or is
// empty, the result is what was loaded before. Replace the file by renaming another one: half of a file may be usable.
func (f *SettingsFile) Settings() *Settings { return f.value.Latest() }

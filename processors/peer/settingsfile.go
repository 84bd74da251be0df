package peer

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/internal/reload"
)

// SettingsFile is a configuration in a file that may change. It is safe for concurrent use, starts no goroutine, and need not be
// closed.
type SettingsFile struct{ value *reload.Value[Settings] }

// SettingsConfig configures OpenSettings. Fields that are zero have their defaults.
type SettingsConfig struct {
	// Environment reads environment variables (default: os.LookupEnv).
	Environment func(string) (string, bool)
	// Logger is for changes of the file (default: none). Values of the file are not logged.
	Logger *zap.Logger
}

// OpenSettings reads a file. Its error wraps ErrSettings for a mistake in the content, and otherwise says why the file cannot be read.
func OpenSettings(path string, c SettingsConfig) (*SettingsFile, error) {
	if c.Environment == nil {
		c.Environment = os.LookupEnv
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	parse := func(contents [][]byte, _ *Settings) (*Settings, error) {
		return ParseSettings(contents[0], c.Environment)
	}
	value, err := reload.Open(parse, time.Now, c.Logger, path)
	if err != nil {
		return nil, fmt.Errorf("peer: open settings %s: %w", path, err)
	}
	return &SettingsFile{value: value}, nil
}

// Settings returns what the file says now. It reads the file, and parses it if its content has changed; concurrent calls wait
// for one another. Call it once for each request and keep the result for the request. If the file cannot be used, the result
// is what was loaded before.
func (f *SettingsFile) Settings() *Settings { return f.value.Latest() }

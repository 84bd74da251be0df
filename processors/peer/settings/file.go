package settings

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors/internal/reload"
)

// File is a configuration in a file that may change. It is safe for concurrent use, starts no goroutine, and need not be
// closed.
type File struct{ value *reload.Value[Settings] }

// Config configures Open. Fields that are zero have their defaults.
type Config struct {
	// Environment reads environment variables (default: os.LookupEnv).
	Environment func(string) (string, bool)
	// Logger is for changes of the file (default: none). Values of the file are not logged.
	Logger *zap.Logger
}

// Open reads a file. Its error wraps ErrSettings for a mistake in the content, and otherwise says why the file cannot be read.
func Open(path string, c Config) (*File, error) {
	if c.Environment == nil {
		c.Environment = os.LookupEnv
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	parse := func(contents [][]byte, _ *Settings) (*Settings, error) { return Parse(contents[0], c.Environment) }
	value, err := reload.Open(parse, time.Now, c.Logger, path)
	if err != nil {
		return nil, fmt.Errorf("settings: open %s: %w", path, err)
	}
	return &File{value: value}, nil
}

// Settings returns what the file says now. It reads the file, and parses it if its content has changed; concurrent calls wait
// for one another. Call it once for each request and keep the result for the request. If the file cannot be used, the result
// is what was loaded before.
func (f *File) Settings() *Settings { return f.value.Latest() }

// Package reload keeps a value that is parsed from files, and parses it again when the files change.
package reload

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

const (
	// every is the shortest time between two looks at the files.
	every = time.Second
	// maxFile is the maximum size of a file in bytes.
	maxFile = 4 << 20
)

// Parse returns the value that the contents of the files stand for. old is the current value, nil at first.
type Parse[T any] func(contents [][]byte, old *T) (*T, error)

// Value is a value that is parsed from files. It is safe for concurrent use and needs not be closed.
type Value[T any] struct {
	paths  []string
	parse  Parse[T]
	now    func() time.Time
	logger *zap.Logger

	value   atomic.Pointer[T]
	mu      sync.Mutex // held by the one goroutine that looks at the files
	looked  atomic.Int64
	seen    [sha256.Size]byte // of the contents that were parsed last, successfully or not
	failure string            // the last one that was logged, until the files are usable again
}

// Open reads the files and returns their value. It fails if a file cannot be read or the value cannot be parsed.
func Open[T any](parse Parse[T], now func() time.Time, logger *zap.Logger, paths ...string) (*Value[T], error) {
	v := &Value[T]{paths: paths, parse: parse, now: now, logger: logger}
	v.looked.Store(now().UnixNano())
	contents, sum, err := v.read()
	if err != nil {
		return nil, err
	}
	value, err := parse(contents, nil)
	if err != nil {
		return nil, err
	}
	v.seen = sum
	v.value.Store(value)
	return v, nil
}

// Get returns the current value. If a second has passed since the last look at the files, one caller reads them, and the
// others get the value from before. If the files cannot be read or parsed, the value stays, and the reason is logged once.
func (v *Value[T]) Get() *T {
	now := v.now().UnixNano()
	if d := now - v.looked.Load(); (d >= int64(every) || d < 0) && v.mu.TryLock() {
		v.look()
		v.looked.Store(now)
		v.mu.Unlock()
	}
	return v.value.Load()
}

// Latest returns the value that the files have now. It reads them in each call, one caller at a time, so that a change has an
// effect on every call after it. If the files cannot be read or parsed, the value stays, and the reason is logged once.
func (v *Value[T]) Latest() *T {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.look()
	v.looked.Store(v.now().UnixNano())
	return v.value.Load()
}

func (v *Value[T]) look() {
	contents, sum, err := v.read()
	if err == nil {
		if sum == v.seen {
			return
		}
		var value *T
		if value, err = v.parse(contents, v.value.Load()); err == nil {
			v.value.Store(value)
			v.failure = ""
			v.logger.Info("files were loaded again", zap.Strings("files", v.paths))
		}
		v.seen = sum
	} else {
		v.seen = [sha256.Size]byte{} // parse them again when they can be read
	}
	if err != nil && err.Error() != v.failure {
		v.failure = err.Error()
		v.logger.Error("changed files cannot be used; what was loaded before stays in use", zap.Strings("files", v.paths),
			zap.Error(err))
	}
}

func (v *Value[T]) read() (contents [][]byte, sum [sha256.Size]byte, err error) {
	all := sha256.New()
	for _, path := range v.paths {
		content, err := readFile(path)
		if err != nil {
			return nil, sum, err
		}
		one := sha256.Sum256(content)
		_, _ = all.Write(one[:])
		contents = append(contents, content)
	}
	return contents, [sha256.Size]byte(all.Sum(nil)), nil
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxFile {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, maxFile)
	}
	return content, nil
}

package host

import (
	"strings"
	"sync"
)

// tailBytes is how much of an agent's standard error is kept.
const tailBytes = 4 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	raw []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.raw = append(t.raw, p[max(0, len(p)-tailBytes):]...)
	if surplus := len(t.raw) - tailBytes; surplus > 0 {
		t.raw = append(t.raw[:0], t.raw[surplus:]...)
	}
	return len(p), nil
}

// text is the end as valid UTF-8.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.raw), ""))
}

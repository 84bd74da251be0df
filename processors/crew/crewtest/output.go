package crewtest

import (
	"io"
	"sync"
)

// output is standard output. A call of Write is one message and is not mixed with another.
type output struct {
	mu    sync.Mutex
	to    io.Writer
	piece int // bytes that are written at once; 0 for all
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.piece == 0 {
		return o.to.Write(p)
	}
	written := 0
	for written < len(p) {
		n, err := o.to.Write(p[written:min(len(p), written+o.piece)])
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

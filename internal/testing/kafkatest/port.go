package kafkatest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gofrs/flock"
)

// The ports are below the ephemeral range of most systems. With an ephemeral port, a client that dials the port of a stopped
// node can get that port as its own, connect to itself, and prevent the node from restarting.
const (
	firstPort = 21000
	portCount = 2000
)

// port is a reserved port of the loopback interface. Other processes that use this package cannot reserve it, also while
// its node is down. Reserving does not listen on the port.
type port struct {
	number int
	lock   *flock.Flock
}

func (p *port) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.number)) }

func (p *port) release() error { return p.lock.Close() }

// reservePort reserves a free port.
func reservePort() (*port, error) {
	// Test binaries that start at the same time have adjacent process IDs. The factor makes them try different ports.
	begin := os.Getpid() * 7
	for i := range portCount {
		p, err := reserve(firstPort + (begin+i)%portCount)
		if err != nil {
			return nil, err
		}
		if p != nil {
			return p, nil
		}
	}
	return nil, errors.New("kafkatest: no free port")
}

// reserveNumber reserves the port with the given number, and returns an error if it is not free.
func reserveNumber(number int) (*port, error) {
	p, err := reserve(number)
	if err == nil && p == nil {
		err = fmt.Errorf("kafkatest: port %d of 127.0.0.1 is in use", number)
	}
	return p, err
}

// reserve returns nil without an error if the port is not free.
func reserve(number int) (*port, error) {
	root, err := cacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(root, "ports")
	if err = os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("kafkatest: %w", err)
	}
	p := &port{number: number, lock: flock.New(filepath.Join(dir, strconv.Itoa(number)))}
	ok, err := p.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("kafkatest: reserve a port: %w", err)
	}
	if !ok {
		return nil, nil
	}
	l, err := net.Listen("tcp", p.addr())
	if err != nil {
		return nil, p.release()
	}
	if err = l.Close(); err != nil {
		return nil, errors.Join(err, p.release())
	}
	return p, nil
}

package turns

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// request is a request of a process on its way through a tap, and later its answer.
type request struct {
	kmsg.Key
	version  int16
	answered bool
}

// verdict is what a tap does with a request, or with its answer.
type verdict int

const (
	pass    verdict = iota
	cutOff          // closes the connection: it is never delivered
	swallow         // it is not delivered, the connection stays open
	forge           // the tap answers itself that all is well; for one request in flight at a time
)

// tap is a proxy between a process and its brokers. It injects faults of the network, or of a process that ends during a
// request. The process needs no test hook: it connects to the tap's address, and the tap replaces the brokers' addresses
// in their answers with its own.
type tap struct {
	// judge is asked for each request before it goes out, and for its answer when the broker has given it.
	judge func(request) verdict
	// rewrite may change a request.
	rewrite []func(kmsg.Request)

	mu     sync.Mutex
	closed bool
	fronts map[string]net.Listener // by the address of the broker behind
	conns  map[net.Conn]struct{}
	work   sync.WaitGroup
}

// newTap returns the tap and where to bootstrap from. It closes with the test at the latest.
func newTap(t testing.TB, brokers []string, judge func(request) verdict, rewrite ...func(kmsg.Request),
) (*tap, []string) {
	t.Helper()
	p := &tap{judge: judge, rewrite: rewrite, fronts: map[string]net.Listener{}, conns: map[net.Conn]struct{}{}}
	t.Cleanup(p.close)
	var addrs []string
	for _, b := range brokers {
		addr, err := p.front(b)
		require.NoError(t, err)
		addrs = append(addrs, addr)
	}
	return p, addrs
}

// front is the address at which the tap stands for a broker.
func (p *tap) front(broker string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.fronts[broker]; l != nil {
		return l.Addr().String(), nil
	}
	if p.closed {
		return "", net.ErrClosed
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	p.fronts[broker] = l
	p.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.work.Go(func() { p.serve(c, broker) })
		}
	})
	return l.Addr().String(), nil
}

func (p *tap) close() {
	p.mu.Lock()
	p.closed = true
	for _, l := range p.fronts {
		_ = l.Close()
	}
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.work.Wait()
}

// hold remembers a connection, so that close ends it.
func (p *tap) hold(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.Close()
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *tap) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// serve carries one connection: its requests in one goroutine, their answers, which come in the same order, in another.
func (p *tap) serve(client net.Conn, address string) {
	broker, err := net.Dial("tcp", address)
	if err != nil {
		_ = client.Close()
		return
	}
	if !p.hold(client) || !p.hold(broker) {
		_ = client.Close()
		_ = broker.Close()
		return
	}
	pending := make(chan request, 1000)
	var answers sync.WaitGroup
	answers.Go(func() {
		p.answers(broker, client, pending)
		p.drop(client)
		p.drop(broker)
	})
	p.requests(client, broker, pending)
	p.drop(client)
	p.drop(broker)
	close(pending)
	answers.Wait()
}

func (p *tap) requests(client, broker net.Conn, pending chan<- request) {
	for {
		frame, err := readFrame(client)
		if err != nil || len(frame) < 8 {
			return
		}
		r := request{
			Key: kmsg.Key(binary.BigEndian.Uint16(frame)), version: int16(binary.BigEndian.Uint16(frame[2:])),
		}
		switch p.judge(r) {
		case cutOff:
			return
		case swallow:
			continue
		case forge:
			if writeFrame(client, forged(r, frame)) != nil {
				return
			}
			continue
		}
		if len(p.rewrite) > 0 {
			frame = p.rewritten(r, frame)
		}
		pending <- r
		if writeFrame(broker, frame) != nil {
			return
		}
	}
}

func (p *tap) answers(broker, client net.Conn, pending <-chan request) {
	for {
		frame, err := readFrame(broker)
		if err != nil || len(frame) < 4 {
			return
		}
		r, ok := <-pending
		if !ok {
			return
		}
		if frame, err = p.ours(r, frame); err != nil {
			return
		}
		r.answered = true
		switch p.judge(r) {
		case cutOff:
			return
		case swallow:
			continue
		}
		if writeFrame(client, frame) != nil {
			return
		}
	}
}

// ours replaces the brokers' addresses with the tap's.
func (p *tap) ours(r request, frame []byte) ([]byte, error) {
	if r.Key != kmsg.Metadata && r.Key != kmsg.FindCoordinator && r.Key != kmsg.DescribeCluster {
		return frame, nil
	}
	resp := kmsg.ResponseForKey(r.Int16())
	resp.SetVersion(r.version)
	header := 4
	if resp.IsFlexible() {
		header++ // no tags
	}
	if err := resp.ReadFrom(frame[header:]); err != nil {
		return nil, err
	}
	var errs []error
	at := func(host *string, port *int32) {
		if *port <= 0 {
			return // no coordinator yet
		}
		addr, err := p.front(net.JoinHostPort(*host, strconv.Itoa(int(*port))))
		if err != nil {
			errs = append(errs, err)
			return
		}
		h, text, _ := net.SplitHostPort(addr)
		n, _ := strconv.Atoi(text)
		*host, *port = h, int32(n)
	}
	switch resp := resp.(type) {
	case *kmsg.MetadataResponse:
		for i := range resp.Brokers {
			at(&resp.Brokers[i].Host, &resp.Brokers[i].Port)
		}
	case *kmsg.FindCoordinatorResponse:
		at(&resp.Host, &resp.Port)
		for i := range resp.Coordinators {
			at(&resp.Coordinators[i].Host, &resp.Coordinators[i].Port)
		}
	case *kmsg.DescribeClusterResponse:
		for i := range resp.Brokers {
			at(&resp.Brokers[i].Host, &resp.Brokers[i].Port)
		}
	}
	return resp.AppendTo(frame[:header:header]), errors.Join(errs...)
}

// forged is an answer of zeros: no error.
func forged(r request, frame []byte) []byte {
	resp := kmsg.ResponseForKey(r.Int16())
	resp.SetVersion(r.version)
	answer := bytes.Clone(frame[4:8]) // the correlation id
	if resp.IsFlexible() {
		answer = append(answer, 0) // no tags
	}
	return resp.AppendTo(answer)
}

// rewritten is the request as rewrite leaves it.
func (p *tap) rewritten(r request, frame []byte) []byte {
	req := kmsg.RequestForKey(r.Int16())
	if req == nil {
		return frame
	}
	req.SetVersion(r.version)
	header := 10 + max(int(int16(binary.BigEndian.Uint16(frame[8:]))), 0) // behind the client id
	if req.IsFlexible() {
		header++ // no tags
	}
	if req.ReadFrom(frame[header:]) != nil {
		return frame
	}
	for _, rewrite := range p.rewrite {
		rewrite(req)
	}
	return req.AppendTo(frame[:header:header])
}

func readFrame(from io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(from, frame)
	return frame, err
}

func writeFrame(to io.Writer, frame []byte) error {
	_, err := to.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
	return err
}

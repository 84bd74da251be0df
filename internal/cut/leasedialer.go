package cut

import (
	"encoding/binary"
	"net"
)

// LeaseDialer makes connections through which a producer sends nothing once its lease is lost. A record that was accepted
// while the lease was held may wait in the producer for a request in flight. A process that is suspended there and resumed
// after its partitions have moved would otherwise send the record after the rows of the new owner.
type LeaseDialer struct {
	Lease *Lease
	Inner interface {
		Dial(network, address string) (net.Conn, error)
	}
	// Opaque says that requests are encrypted before they are written. Produce requests cannot be told apart then, so every
	// request is blocked.
	Opaque bool
}

// Dial makes a connection by Inner. Its writes return ErrLease once the lease is lost.
func (d *LeaseDialer) Dial(network, address string) (net.Conn, error) {
	c, err := d.Inner.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return &leasedConn{Conn: c, dialer: d}, nil
}

type leasedConn struct {
	net.Conn
	dialer *LeaseDialer
}

// produceKey is the API key of a produce request; it follows the length.
const produceKey = 0

// Write writes one request: Sarama calls it once per request.
func (c *leasedConn) Write(request []byte) (int, error) {
	produces := len(request) < 6 || binary.BigEndian.Uint16(request[4:]) == produceKey
	if (produces || c.dialer.Opaque) && c.dialer.Lease.Lost() {
		return 0, ErrLease
	}
	return c.Conn.Write(request)
}

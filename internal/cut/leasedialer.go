package cut

import (
	"encoding/binary"
	"net"
)

// LeaseDialer makes the connections of a producer that sends nothing once its lease is lost. A record that was accepted
// while the lease was held may wait in the producer behind a request in flight; a process that is stopped there and
// continued after its partitions have moved would send it behind the rows of the new owner.
type LeaseDialer struct {
	Lease *Lease
	Inner interface {
		Dial(network, address string) (net.Conn, error)
	}
	// Opaque says that requests are encrypted on the way: then no request passes, not only none that produces.
	Opaque bool
}

// Dial makes a connection of the inner dialer that asks the lease at every write.
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

// produceKey is the API key of a produce request; it stands behind the length.
const produceKey = 0

// Write writes one request, which is how Sarama calls it.
func (c *leasedConn) Write(request []byte) (int, error) {
	produces := len(request) < 6 || binary.BigEndian.Uint16(request[4:]) == produceKey
	if (produces || c.dialer.Opaque) && c.dialer.Lease.Lost() {
		return 0, ErrLease
	}
	return c.Conn.Write(request)
}

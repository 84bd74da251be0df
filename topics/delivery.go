package topics

import "fmt"

// The kinds of transport of a Destination.
const (
	// KindHTTP sends an HTTP callback to a service of the registry.
	KindHTTP = "http"
	// KindWebSocket sends a frame to the WebSocket clients that subscribed to the session.
	KindWebSocket = "websocket"
	// KindFunction calls a function of the program that the sink runs in.
	KindFunction = "function"
	// KindLog writes a log line.
	KindLog = "log"
	// KindPeer sends a task to another instance, see processors/peer.
	KindPeer = "peer"
	// KindChannel sends a message to the origin of a turn, see processors/delegation. The service is the channel and the account.
	KindChannel = "channel"
)

// Destination is where a delivery goes. Records contain no addresses: the sink looks the service up in its registry.
type Destination struct {
	Kind    string // one of the Kind constants
	Service string // the service's name in the registry
}

// Key returns "{kind}/{service}", the key of the route in tables and receipts.
func (d Destination) Key() string { return d.Kind + "/" + d.Service }

// Delivery is the value of {agent}-deliveries and {agent}-peer-attempts: one attempt of a delivery, emitted when it is due. DeliveryID and
// Attempt identify it.
type Delivery struct {
	DeliveryID string
	SessionID  string
	TurnID     string
	RequestID  *string
	Route      Destination
	// Token is the bearer token of the route, or nil. It is a secret.
	Token *string
	// Body is the payload, for an output the output without its reply_to.
	Body      Raw
	CreatedMS int64 // Unix milliseconds
	// ExpiresMS is when the delivery is given up, in Unix milliseconds.
	ExpiresMS int64
	// Attempt is the number of the attempt, from 1.
	Attempt int64
	// NotBeforeMS is when the attempt became due, in Unix milliseconds.
	NotBeforeMS int64
	// LeaseUntilMS is when the attempt's lease ends, in Unix milliseconds. The delivery group then stops waiting for the
	// receipt and makes another attempt, so a sink skips a record whose lease has ended.
	LeaseUntilMS int64
	// Channel is the reply descriptor of a KindChannel: the origin, and the gate that the delivery asks about. Else it is nil.
	Channel Raw
	// Progress is the Response of the newest receipt of a failed attempt of a KindChannel: what was sent already. Or nil.
	Progress Raw
}

var deliveryWire = wire[Delivery]{depth: MaxDepth, read: readValidDelivery, write: writeDelivery}

// readValidDelivery rejects a record that does not identify an attempt and its route.
func readValidDelivery(c *cursor, d *Delivery) error {
	if err := readDelivery(c, d); err != nil {
		return err
	}
	if d.DeliveryID == "" || d.Attempt < 1 || d.Route.Kind == "" {
		return fmt.Errorf("%w: field delivery_id, attempt or route: missing", ErrType)
	}
	return nil
}

func readDelivery(c *cursor, d *Delivery) error {
	return c.record(func(name []byte) (err error) {
		switch string(name) {
		case "delivery_id":
			d.DeliveryID, err = c.word()
		case "session_id":
			d.SessionID, err = c.word()
		case "turn_id":
			d.TurnID, err = c.word()
		case "request_id":
			d.RequestID, err = c.text()
		case "route":
			d.Route, err = readDestination(c)
		case "bearer_token":
			d.Token, err = c.text()
		case "body":
			d.Body, err = c.document()
		case "created_ms":
			d.CreatedMS, err = c.integer(64)
		case "expires_ms":
			d.ExpiresMS, err = c.integer(64)
		case "attempt":
			d.Attempt, err = c.integer(32)
		case "not_before_ms":
			d.NotBeforeMS, err = c.integer(64)
		case "lease_until_ms":
			d.LeaseUntilMS, err = c.integer(64)
		case "channel":
			d.Channel, err = c.document()
		case "progress":
			d.Progress, err = c.document()
		default:
			err = c.skip()
		}
		return err
	})
}

func writeDelivery(w *writer, d Delivery) {
	w.grow(len(d.Body) + len(d.Channel) + len(d.Progress))
	w.open()
	w.word("delivery_id", d.DeliveryID)
	w.word("session_id", d.SessionID)
	w.word("turn_id", d.TurnID)
	w.text("request_id", d.RequestID)
	writeDestination(w, d.Route)
	w.text("bearer_token", d.Token)
	w.raw("body", d.Body)
	w.integer("created_ms", d.CreatedMS)
	w.integer("expires_ms", d.ExpiresMS)
	w.integer("attempt", d.Attempt)
	w.integer("not_before_ms", d.NotBeforeMS)
	w.integer("lease_until_ms", d.LeaseUntilMS)
	w.someRaw("channel", d.Channel)
	w.someRaw("progress", d.Progress)
	w.close()
}

func readDestination(c *cursor) (d Destination, err error) {
	if c.dec.PeekKind() == 'n' {
		return d, c.skip()
	}
	err = c.object(func(name []byte) (err error) {
		switch string(name) {
		case "kind":
			d.Kind, err = c.word()
		case "service":
			d.Service, err = c.word()
		default:
			err = c.skip()
		}
		return err
	})
	return d, err
}

func writeDestination(w *writer, d Destination) {
	w.name("route")
	w.open()
	w.word("kind", d.Kind)
	w.word("service", d.Service)
	w.close()
}

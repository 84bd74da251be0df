package topics

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
	Kind    string `json:"kind"`    // one of the Kind constants
	Service string `json:"service"` // the service's name in the registry
}

// Key returns "{kind}/{service}", the key of the route in tables and receipts.
func (d Destination) Key() string { return d.Kind + "/" + d.Service }

// Delivery is the value of {agent}-deliveries and {agent}-peer-attempts: one attempt of a delivery, emitted when it is due. DeliveryID and
// Attempt identify it.
type Delivery struct {
	DeliveryID string      `json:"delivery_id"`
	SessionID  string      `json:"session_id"`
	TurnID     string      `json:"turn_id"`
	RequestID  *string     `json:"request_id"`
	Route      Destination `json:"route"`
	// Token is the bearer token of the route, or nil. It is a secret.
	Token *string `json:"bearer_token"`
	// Body is the payload, for an output the output without its reply_to.
	Body      Raw   `json:"body" as:"object"`
	CreatedMS int64 `json:"created_ms"` // Unix milliseconds
	// ExpiresMS is when the delivery is given up, in Unix milliseconds.
	ExpiresMS int64 `json:"expires_ms"`
	// Attempt is the number of the attempt, from 1.
	Attempt int64 `json:"attempt" as:"int32"`
	// NotBeforeMS is when the attempt became due, in Unix milliseconds.
	NotBeforeMS int64 `json:"not_before_ms"`
	// LeaseUntilMS is when the attempt's lease ends, in Unix milliseconds. The delivery group then stops waiting for the
	// receipt and makes another attempt, so a sink skips a record whose lease has ended.
	LeaseUntilMS int64 `json:"lease_until_ms"`
	// Channel is the reply descriptor of a KindChannel: the origin, and the gate that the delivery asks about. Else it is nil.
	Channel Raw `json:"channel,omitzero" as:"object"`
	// Progress is the Response of the newest receipt of a failed attempt of a KindChannel: what was sent already. Or nil.
	Progress Raw `json:"progress,omitzero" as:"object"`
}

var deliveryWire = tagged(checkDelivery)

// checkDelivery rejects a record that does not identify an attempt and its route.
func checkDelivery(d *Delivery) error {
	if d.DeliveryID == "" || d.Attempt < 1 || d.Route.Kind == "" {
		return missing("delivery_id, attempt or route")
	}
	return nil
}

// Package adapter is the interface between platforms and package channel: what an adapter of a platform receives and sends.
//
// An adapter has no rules. What it receives it passes to a Receiver, which decides what becomes of it; what it is told to send
// it sends once, and reports how the platform answered. Everything else is shared: policies and commands (channel.Bridge),
// rendering, splitting, resuming and receipts (channel.Transport), retries and dead deliveries (package delivery).
//
// # An adapter of your own
//
// An adapter for one account of a platform implements Adapter. By convention it receives with one or both of these methods, which
// your program calls; package channel does not:
//
//	Handler(to Receiver) http.Handler               // for platforms that send requests; verify each one
//	Run(ctx context.Context, to Receiver) error     // for platforms that are polled or keep a connection; returns nil when ctx ends
//	Close()                                         // closes idle connections, after the sink and Run have ended
//
// The example Adapter of package channel is a complete one, with requests in both directions.
//
// # Receiving
//
// The Origin of every event has the text of Adapter.Channel as Channel, and as Account the name that the program gives the adapter
// in channel.AccountAdapter and in the settings. Otherwise the event is refused, or its answer finds no adapter and is dead. The
// texts of an Origin are UTF-8 of at most 512 bytes each, and its Adapter, an object, has at most topics.MaxAdapterData. The bridge
// drops an event whose Origin.Check fails, or that has no Event, and returns nil. Call Check yourself to tell the platform.
//
// An empty Proof, topics.ProofPlatform, says that the person is authenticated, so their commands and buttons can approve calls. Set
// topics.ProofNone if anyone can write the sender's ID, and topics.ProofCode if only the sender's domain is proven.
//
// Call Receive for one event of a conversation (Origin.Session) at a time: of two calls at the same time, either can be first.
// Receive returns when its records are on the brokers, and blocks while brokers are down. Bound it with a context that ends before
// the platform gives up, and bound how many requests wait. After an error, answer so that the platform sends the event again, such
// as with 503, or do not confirm it; with Run, call Receive again after a pause. Repeats are recognized by Event and change nothing.
//
// # Sending
//
// Send sends one chunk, once, and does not retry. Its ctx ends after channel.TransportConfig.SendTimeout (20 s), or earlier if the
// lease of the attempt ends (delivery.Config.Lease): 2 s are kept for the receipt, at most half of what is left. Return soon after
// that. A chunk that the platform may have accepted is sent again with the same Key.
//
// A Failure is Final only if the same chunk would be refused again. The adapters of this module judge HTTP statuses like this:
//
//	408, 425, 429, 5xx        retried, not before RetryAfter
//	401                       retried: the operator can replace the token
//	no response               retried
//	other than 2xx            Final, redirects included
//	403, 404 of a proxy       retried: without the platform's own error code, the address may be wrong
//
// # Wiring
//
//	topics.For(agent, topics.WithChannels(), topics.WithDeliveries(), topics.WithGates())
//	turn.Config.Channels, delivery.Config.Channels, gate.Config.Channels
//	channel.NewBridge       the Receiver of all adapters
//	channel.NewTransport    with a channel.AccountAdapter for each account; a transport of sink.Config, with the key channel.Kind
//
// Without gates, leave out topics.WithGates and gate.Config. The program examples/channels has all of it.
package adapter

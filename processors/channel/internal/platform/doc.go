// Package platform is what the adapters of platforms share. An adapter embeds Base, checks its configuration with Check, and has of its
// own what differs between platforms: wire structs, signatures, and what an event and a chunk become.
//
// Requests to a platform: Client sends secrets to no other host and reads bounded responses, Do sends and receives JSON, Dial
// connects a WebSocket, Stream reads it and Reconnect keeps it. Errors and HTTP statuses become an adapter.Failure.
//
// Requests of a platform, at the HTTP door of an adapter, pass two stages:
//
//	Serve  method (405), content type (415), slots of all senders and of this address (503), speed (408) and size (413) of the body
//	Pass   one event of a conversation at a time, in the order of their arrival; slots for events in progress (503)
//
// Between them the adapter verifies the request. A sender that cannot sign therefore never occupies a slot for events, and one
// that sends its bodies slowly occupies no more than the share of its address. All refusals close the connection.
package platform

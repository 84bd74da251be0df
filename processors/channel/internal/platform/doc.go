// Package platform is what the adapters of platforms share.
//
// Requests to a platform: Client sends secrets to no other host and reads bounded responses, Do sends and receives JSON, Dial
// connects a WebSocket, and Reconnect keeps a connection. Errors and HTTP statuses become an adapter.Failure.
//
// Requests of a platform, at the HTTP door of an adapter, pass two stages:
//
//	Read    method (405), content type (415), slots of all senders and of this address (503), speed (408) and size (413) of the body
//	Submit  one event of a conversation at a time, in the order of their arrival; slots for events in progress (503)
//
// Between them the adapter verifies the request. A sender that cannot sign therefore never occupies a slot for events, and one
// that sends its bodies slowly occupies no more than the share of its address. All refusals close the connection.
package platform

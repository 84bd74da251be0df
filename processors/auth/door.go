package auth

import (
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
)

// Door configures what all HTTP and WebSocket doors have in common. The Config of a door embeds it, and says where the door has other
// defaults.
type Door struct {
	// Authenticate identifies callers. A request for which it returns an error, or whose credential has ended, is answered with
	// 401, and that of a caller without the rights that it needs with 403. A door without Authenticate accepts every caller and logs
	// a warning, unless Open is set or it says otherwise.
	Authenticate Authenticate
	// Open says that a door without Authenticate is meant to accept every caller: it logs no warning.
	Open bool
	// Origins are the origins of the pages of other hosts that may use the door, for example https://app.example.com; "*" for all
	// (default: none). The scripts of a named origin may send cookies. Requests of other pages are answered with 403, unless they
	// only read. With Authenticate, "*" trusts no page: the scripts may only read, without cookies.
	//
	// Without Authenticate and Hosts, a request that arrives at a loopback address must name this machine or the host of a named
	// origin, otherwise it is answered with 403: the page of any site can give this machine another name. With "*" it may name any
	// host.
	Origins []string
	// Headers are the headers that requests of those scripts may have besides Content-Type and those of the door (default: none). Name
	// Authorization and Idempotency-Key here if browsers send them.
	Headers []string
	// Hosts are the names with which clients may address the door: names in lower case or addresses, without a port, that the header
	// Host is compared with (default: any; see Origins for the exception). Requests to other names are answered with 403. So a page
	// whose name is made to resolve to the address of the door (DNS rebinding) cannot use the door as a page of its origin.
	Hosts []string
	// BodyLimit is the largest body of a request in bytes (default 1 MiB, at least 1). A longer one is answered with 413.
	BodyLimit int64
	// Concurrency is the number of concurrent requests (default 1024, at least 1). Requests that wait, and streams, count. Further
	// ones get 503.
	Concurrency int
	// Limits are those of each caller and of each session. Zero fields have their defaults.
	Limits Limits
	// Audit receives events about requests that had an effect or were refused (default: Logger).
	Audit AuditSink
	// Clock is for limits, waits and the end of credentials (default: the system's).
	Clock processors.Clock
	// Logger logs no contents of requests and records (default: none).
	Logger *zap.Logger
}

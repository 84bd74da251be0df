package httpserver

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// WithTrustedProxies returns a handler that passes requests to h with the address of their client as RemoteAddr, by which the
// doors of this module tell callers apart that have no name. The address is that which the trusted proxies name in the header
// X-Forwarded-For: the last one in it that is no trusted proxy. A request whose sender is not a trusted proxy keeps its address,
// whatever it says, because anyone can send the header. Name only proxies that set the header or append to it.
func WithTrustedProxies(h http.Handler, proxies ...netip.Prefix) http.Handler {
	trusted := func(a netip.Addr) bool {
		for _, p := range proxies {
			if p.Contains(a) {
				return true
			}
		}
		return false
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, ok := parseAddr(r.RemoteAddr)
		if !ok || !trusted(peer) {
			h.ServeHTTP(w, r)
			return
		}
		client := peer
		for hops := strings.Join(r.Header.Values("X-Forwarded-For"), ","); trusted(client); {
			at := strings.LastIndexByte(hops, ',')
			next, ok := parseAddr(strings.TrimSpace(hops[at+1:]))
			if !ok { // a trusted proxy has seen no more
				break
			}
			if client = next; at < 0 {
				break
			}
			hops = hops[:at]
		}
		if client != peer {
			r = r.WithContext(r.Context()) // the caller's request stays as it is
			r.RemoteAddr = net.JoinHostPort(client.String(), "0")
		}
		h.ServeHTTP(w, r)
	})
}

// parseAddr reads an address with or without a port.
func parseAddr(text string) (netip.Addr, bool) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	return a.Unmap().WithZone(""), err == nil
}

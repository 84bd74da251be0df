package sink

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// ErrServices is wrapped by every error about a host mapping. It names the entry, never what stands in its URL.
var ErrServices = errors.New("sink: bad host mapping")

// CallbackPath is where a service takes results: the path of a callback is fixed, whoever asks for it.
const CallbackPath = "/api/tools/response"

// Services is the registry of callback services: names and where they are. It is read-only, and the only place where
// addresses come from: what is not in it cannot be reached. The zero value knows nobody.
type Services struct{ urls map[string]string }

// ParseServices reads a host mapping as ALLOWED_HOST_MAPPING has it: entries "name:url", separated by commas. A blank
// mapping is one without services. Of entries with one name the last counts. All bad entries are named in one error.
//
// Beyond FlightDeck's rules (contract 3.4) a URL must be absolute, of http or https, with a host, and without a query,
// a fragment or a user: nothing else can be called back.
func ParseServices(mapping string) (Services, error) {
	s := Services{urls: map[string]string{}}
	var errs []error
	number := 0
	for entry := range strings.SplitSeq(mapping, ",") {
		number++
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		name, base, found := strings.Cut(entry, ":")
		name, base = strings.TrimSpace(name), strings.TrimSpace(base)
		if !found || name == "" || base == "" {
			errs = append(errs, fmt.Errorf("%w: entry %d is not name:url", ErrServices, number))
			continue
		}
		if err := checkBase(base); err != nil {
			errs = append(errs, fmt.Errorf("%w: entry %d (%q): %w", ErrServices, number, name, err))
			continue
		}
		s.urls[name] = strings.TrimSuffix(base, "/") + CallbackPath
	}
	if len(errs) > 0 {
		return Services{}, errors.Join(errs...)
	}
	return s, nil
}

var errURL = errors.New("url is not http(s)://host[:port][/path]")

func checkBase(base string) error {
	u, err := url.Parse(base)
	if err == nil && u.Port() != "" {
		_, err = strconv.ParseUint(u.Port(), 10, 16)
	}
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.Opaque != "":
		return errURL
	case u.User != nil, u.RawQuery != "", u.ForceQuery, u.Fragment != "", strings.Contains(base, "#"):
		return errURL
	}
	// What is put together from it must be what was checked.
	callback, err := url.Parse(strings.TrimSuffix(base, "/") + CallbackPath)
	if err != nil || callback.Host != u.Host || !strings.HasSuffix(callback.Path, CallbackPath) {
		return errURL
	}
	return nil
}

// Known reports whether a service is in the registry, by its exact name.
func (s Services) Known(service string) bool {
	_, ok := s.urls[service]
	return ok
}

// CallbackURL is where a service takes results; ok is false for one that is not in the registry.
func (s Services) CallbackURL(service string) (callback string, ok bool) {
	callback, ok = s.urls[service]
	return callback, ok
}

// Names are the services, sorted.
func (s Services) Names() []string { return slices.Sorted(maps.Keys(s.urls)) }

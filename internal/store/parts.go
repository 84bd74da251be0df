package store

import "github.com/turntable-streams/turntable/internal/runtimeapi"

// Parts returns the numbers of the parts that are stored under the key of a row, in no order. It looks through all rows that
// are not flushed yet, so it is for rare events only.
func (s *Store) Parts(key string) (numbers []uint32, err error) {
	err = s.alive(func() error {
		found := map[string]bool{} // whether it has a value
		s.mu.RLock()
		for _, l := range []*layer{s.sealed, s.open} { // the open layer hides the sealed one
			if l == nil {
				continue
			}
			for k, r := range l.rows {
				if _, ok := runtimeapi.PartNumber(key, k); ok {
					found[k] = r.value != nil
				}
			}
		}
		// The parts of a row have the keys from key NUL to key SOH.
		base := s.base.scan([]byte(key+"\x00"), []byte(key+"\x01"))
		s.mu.RUnlock()
		defer base.release()
		for base.next() {
			if _, hidden := found[string(base.key())]; !hidden {
				found[string(base.key())] = true
			}
		}
		for k, stored := range found {
			if n, ok := runtimeapi.PartNumber(key, k); ok && stored {
				numbers = append(numbers, n)
			}
		}
		return base.err()
	})
	return numbers, err
}

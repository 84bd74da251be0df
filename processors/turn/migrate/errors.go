package migrate

import "errors"

// The reasons why Import and Export refuse to run. Nothing was written then.
var (
	// ErrActive says that the group of the turn has members: FlightDeck's processing application, or one of this library.
	ErrActive = errors.New("migrate: the group has members")
	// ErrRows says that the table has rows that Import has not written.
	ErrRows = errors.New("migrate: the table has rows of the turn")
	// ErrOffsets says that the group's committed offsets do not say where the import ends.
	ErrOffsets = errors.New("migrate: the committed offsets do not fit")
	// ErrPartitions says that two topics differ in their number of partitions.
	ErrPartitions = errors.New("migrate: the numbers of partitions differ")
	// ErrExported says that the sessions were given back to FlightDeck after the import.
	ErrExported = errors.New("migrate: the sessions were exported")
	// ErrNoStore says that FlightDeck's history store has no changelog.
	ErrNoStore = errors.New("migrate: the topic of FlightDeck's store does not exist")
)

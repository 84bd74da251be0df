package main

// The program runs until Ctrl-C, against a broker on this machine.
func Example() {
	main()
}

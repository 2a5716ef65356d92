// Package command hands deliveries to a program of this host: the message on its
// standard input, and in its environment
//
//	PLACET_DELIVERY_ID   the same in every attempt: the program's key
//	PLACET_EVENT_TYPE    the event's type
//	PLACET_ATTEMPT       1 for the first
//
// besides PATH, HOME, LANG, TZ and TMPDIR of this process, and nothing else. Exit status
// 0 says that it has arrived, any other that it has not (75, EX_TEMPFAIL, is what a
// program writes that knows it may work later). What it prints goes nowhere; the end of
// its standard error is told where it failed.
//
// The program leads a process group of its own. Towards the end of an attempt's time
// the group gets SIGTERM, and SIGKILL when that did not help.
package command

// Package store is the portable half of a store: what every backend must do
// alike is written here once. A backend provides rows in and rows out and judges
// nothing; this package chains events, keeps the heads of streams, counts what
// limits are held against, and binds owners to the transaction.
//
// [Store] is what the engines of all nouns are given.
package store

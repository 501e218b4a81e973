// A long list of which pages are asked for as they come into sight. Some of what a page has is not
// shown: until a page has come, all of it counts.

// createPages returns a list without items. size is how many a page of the server has.
export function createPages(size) {
  const had = new Map() // what is shown of a page, by its number
  const pages = { total: null } // how many items the server has; null until it has said so

  const pageSize = (n) => had.get(n)?.length ?? Math.min(size, pages.total - n * size)

  // place is where the item of an index is: {page, index}.
  pages.place = (i) => {
    let page = 0
    while (page * size < pages.total && i >= pageSize(page)) i -= pageSize(page++)
    return { page, index: i }
  }
  pages.at = (i) => {
    const { page, index } = pages.place(i)
    return had.get(page)?.[index]
  }
  pages.count = () => {
    let n = 0
    for (let page = 0; page * size < pages.total; page++) n += pageSize(page)
    return n
  }
  pages.get = (n) => had.get(n)
  pages.set = (n, items, total) => {
    had.set(n, items)
    pages.total = total
  }
  return pages
}

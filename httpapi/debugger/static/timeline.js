export function mount(element, app) {}
